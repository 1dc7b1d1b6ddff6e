/**
 * The most runs of a group that may be claimed at once. A group without a limit has no row, so if there are no limits, claims read an empty
 * table. Claims of the group lock its row while they count; `cursor` is the task that was served last.
 */
export const groupLimits = (s: string) => `
create table ${s}.group_limit (
  group_id int primary key references ${s}.worker_group,
  most int not null check (most > 0),
  cursor int not null default 0
) with (fillfactor = 50);

create table ${s}.group_limit_change (
  id bigint generated always as identity primary key,
  group_id int not null references ${s}.worker_group,
  most int,
  author text not null,
  reason text not null,
  changed_ms bigint not null
);
create index group_limit_change_group on ${s}.group_limit_change (group_id, id);
create index task_group on ${s}.task (group_id);
`;
