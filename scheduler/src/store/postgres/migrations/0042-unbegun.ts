/**
 * The follow-up run that a success asked for and that was not created, because the cancellation of the run had been requested: {source,
 * task, payload}. A repeated verdict is compared with this value. Older code leaves the column empty, and refuses a repeated verdict.
 */
export const unbegun = (s: string) => `
alter table ${s}.run_history add column unbegun jsonb;
`;
