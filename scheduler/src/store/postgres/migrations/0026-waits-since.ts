/**
 * The time since which a waiting run waits for a worker, and no longer for a limit. For a run that got a place or a token, it is the time
 * when it did; for a group with a limit, the time when the group was last seen at its limit. Without it, an old run that only now may be
 * taken would look as if no worker had taken it for long. Also an index of the tasks whose runs are addressed.
 */
export const waitsSince = (s: string) => `
alter table ${s}.run add column ready_ms bigint;
alter table ${s}.group_limit add column full_ms bigint;
create index task_routed on ${s}.task (id) where routed;
`;
