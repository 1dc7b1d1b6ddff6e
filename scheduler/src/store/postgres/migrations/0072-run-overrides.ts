/**
 * `overrides` is a run's own retry policy and timeout; `expires_ms` is the time after which the run must not start; `again` is an enqueue
 * that is made when the run ends (see enqueue/again.ts). Workers of older versions use the task's policies, and start a run that has
 * expired. Nodes of older versions end a run without making the enqueue in `again`.
 */
export const runOverrides = (s: string) => `
alter table ${s}.run add column overrides jsonb, add column expires_ms bigint, add column again jsonb;
alter table ${s}.run_history add column overrides jsonb, add column expires_ms bigint;
create index run_expires on ${s}.run (expires_ms) where expires_ms is not null and attempt = 0;
`;
