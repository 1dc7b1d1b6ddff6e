/**
 * The runs that a success asked to begin, and that were not begun because the cancellation of its run had been requested: {source, task,
 * payload}. A repeated verdict is compared with them. Older code leaves the column empty, and refuses such a repetition.
 */
export const unbegun = (s: string) => `
alter table ${s}.run_history add column unbegun jsonb;
`;
