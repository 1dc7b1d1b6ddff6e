/**
 * Late starts by their cause. `late_ms`: from when on the alarms call a start late, so that every process that starts runs can report the
 * late ones, whether it has alarms itself or not; `late_until_ms`: until when that holds. `group_freed`: when a slot of a group that was at
 * its limit became free. `run_history.ready_ms`: since when the run waited only for a worker.
 */
export const lateness = (s: string) => `
alter table ${s}.cluster add column late_ms bigint, add column late_until_ms bigint;
alter table ${s}.run_history add column ready_ms bigint;
create table ${s}.group_freed (
  group_id int not null,
  at_ms bigint not null
);
create index group_freed_group on ${s}.group_freed (group_id);
`;
