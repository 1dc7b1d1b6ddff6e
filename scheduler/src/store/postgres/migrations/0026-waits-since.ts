/**
 * `ready_ms` is the time since which a waiting run waits only for a worker, and no longer for a limit: the time at which it got a slot or a
 * token. `full_ms` is the time at which a limited group was last found at its limit. Without these times, an old run that only now may be
 * claimed would look as if no worker had claimed it for long. Also an index of the tasks whose runs are addressed.
 */
export const waitsSince = (s: string) => `
alter table ${s}.run add column ready_ms bigint;
alter table ${s}.group_limit add column full_ms bigint;
create index task_routed on ${s}.task (id) where routed;
`;
