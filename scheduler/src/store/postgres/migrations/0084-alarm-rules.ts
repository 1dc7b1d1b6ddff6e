/**
 * Stored alarm rules; the counters of tasks as of the last evaluation of these rules, separate from those of `alarm_seen`, because only
 * some processes evaluate the built-in rules; and the time at which an incident was escalated. The row of a removed rule stays, so that the
 * versions of a later rule with the same name continue. Nodes of older versions do not evaluate stored rules.
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
