/**
 * The time of the last evaluation of the stored alarm rules, and the versions of tasks' definitions that rules of kind changed have found.
 * Times of nodes differ, and a transaction commits later than the time that it writes, so versions that were found are kept by number.
 */
export const alarmLooks = (s: string) => `
create table ${s}.alarm_rule_look (
  one boolean primary key default true check (one),
  at_ms bigint not null
);
create table ${s}.alarm_version (
  rule text not null,
  task_id int not null,
  version int not null,
  primary key (rule, task_id)
);
`;
