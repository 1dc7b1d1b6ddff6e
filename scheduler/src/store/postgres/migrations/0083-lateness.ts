/**
 * Late starts by their cause. `late_ms` is the delay from which on the alarms call a start late, and `late_until_ms` the time until which
 * this is valid, so that every process that starts runs can report late ones, even if it does not evaluate alarms. `group_freed` records
 * when a slot of a group at its limit became free. `run_history.ready_ms` is the time since which the run waited only for a worker.
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
