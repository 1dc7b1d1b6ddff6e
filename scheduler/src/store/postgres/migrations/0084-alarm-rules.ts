/**
 * Alarm rules that the store keeps; the counters of tasks as of the last evaluation of these rules, apart from those of `alarm_seen`,
 * because only some processes evaluate the rules of their settings; and when an incident was escalated. A rule that is removed leaves its
 * row, so that the versions of a later rule of the same name continue. Nodes of older code do not evaluate stored rules.
 */
export const storedAlarmRules = (s: string) => `
create table ${s}.alarm_rule (
  name text primary key,
  version int not null,
  content jsonb not null,
  author text not null,
  reason text not null,
  changed_ms bigint not null,
  deleted_ms bigint
);
create table ${s}.alarm_rule_seen (
  task_id int primary key,
  failed bigint not null,
  missed bigint not null
);
alter table ${s}.alarm_incident add column escalated_ms bigint;
`;
