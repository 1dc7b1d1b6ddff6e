/**
 * Alarms, open or cleared; the open incident of each rule; reports for the next evaluation; the messages to send; and the counters of each
 * task as of the last evaluation. A row of `alarm_seen` for task 0 shows that alarms have been evaluated at least once.
 */
export const alarms = (s: string) => `
create table ${s}.alarm (
  rule text not null,
  subject text not null,
  opened_ms bigint not null,
  last_ms bigint not null,
  count bigint not null,
  text text not null,
  run_id bigint,
  succeeded bigint not null default 0,
  cleared_ms bigint,
  primary key (rule, subject)
);
create index alarm_open on ${s}.alarm (rule) where cleared_ms is null;

create table ${s}.alarm_incident (
  rule text primary key,
  opened_ms bigint not null,
  told_ms bigint not null,
  window_ms bigint not null,
  total bigint not null,
  told bigint not null,
  quiet_ms bigint
);

create table ${s}.alarm_seen (
  task_id int primary key,
  failed bigint not null,
  missed bigint not null
);

create table ${s}.alarm_report (
  rule text not null,
  subject text not null,
  count bigint not null,
  text text not null,
  run_id bigint,
  at_ms bigint not null
);

create table ${s}.alarm_outbox (
  id bigint generated always as identity primary key,
  channel text not null,
  rule text not null,
  kind text not null,
  body jsonb not null,
  created_ms bigint not null,
  attempts int not null default 0,
  next_ms bigint,
  sent_ms bigint,
  error text
);
create index alarm_outbox_next on ${s}.alarm_outbox (next_ms) where sent_ms is null;
`;
