/**
 * Since when what waits has waited for a worker, and no more for a limit: of a run that was given a place or a token, when that
 * was; of a group with a limit, when it was last seen at it. Without them an old run that may be taken at last looks as if
 * nobody had taken it for long. And an index of the tasks whose runs are addressed, for who looks at those alone.
 */
export const waitsSince = (s: string) => `
alter table ${s}.run add column ready_ms bigint;
alter table ${s}.group_limit add column full_ms bigint;
create index task_routed on ${s}.task (id) where routed;
`;
