/**
 * A run may have a retry policy and a timeout of its own, and a time after which it is not begun any more. Workers of older code go by the
 * task's policies, and begin a run that has expired. A run may also have an enqueue that follows it: see enqueue/again.ts. Nodes of older code
 * end such a run without it.
 */
export const runOverrides = (s: string) => `
alter table ${s}.run add column overrides jsonb, add column expires_ms bigint, add column again jsonb;
alter table ${s}.run_history add column overrides jsonb, add column expires_ms bigint;
create index run_expires on ${s}.run (expires_ms) where expires_ms is not null and attempt = 0;
`;
