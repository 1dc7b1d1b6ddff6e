/**
 * Figures of each task by the hour, which outlive the history of runs. `tally.hour` is the hour, counted from 1970, in which the task's
 * counters last rose. `task_counts` holds the counters at the end of each hour in which they rose; the counts of one hour are the
 * difference from the row before. `task_times` holds how many runs of an hour took how long (kind 0) or began how late (kind 1), by size
 * class (`bucket`), with the sum and the largest value of each class. Rows of old hours are merged by day. `statistics` holds the time up
 * to which the history was read, and the hour before which rows are merged.
 */
export const statistics = (s: string) => `
alter table ${s}.tally add column hour int not null default 0;
create table ${s}.task_counts (
  task_id int not null,
  hour int not null,
  succeeded bigint not null,
  failed bigint not null,
  cancelled bigint not null,
  skipped bigint not null,
  missed bigint not null,
  retried bigint not null,
  primary key (task_id, hour)
);
create table ${s}.task_times (
  task_id int not null,
  hour int not null,
  kind smallint not null,
  bucket smallint not null,
  runs bigint not null,
  sum_ms bigint not null,
  most_ms bigint not null,
  primary key (task_id, hour, kind, bucket)
);
create index task_counts_hour on ${s}.task_counts using brin (hour);
create index task_times_hour on ${s}.task_times using brin (hour);
create table ${s}.statistics (
  one boolean primary key default true check (one),
  until_ms bigint not null,
  merged_hour int
);
`;
