/**
 * What a success asked to begin, and did not because the cancellation of its run had been asked for: {source, task, payload}. A verdict that
 * is said again is compared with it. Older code leaves it out, and refuses such a repetition.
 */
export const unbegun = (s: string) => `
alter table ${s}.run_history add column unbegun jsonb;
`;
