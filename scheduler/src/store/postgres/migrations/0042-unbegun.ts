/**
 * The follow-up run that a successful run requested in its verdict, if it was not created because the cancellation of the
 * successful run had been requested: {source, task, payload}. If the worker sends the verdict again, it is compared with this
 * value. Servers of older versions leave the column empty, and refuse the repeated verdict.
 */
export const unbegun = (s: string) => `
alter table ${s}.run_history add column unbegun jsonb;
`;
