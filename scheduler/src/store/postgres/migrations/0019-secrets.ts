/**
 * Secrets of tasks. Each value is encrypted with its own data key, and this key is encrypted with a key that is never in the store. Also:
 * the acknowledgements and silences of alarms, every try to send a message, and the trace context of traced runs.
 */
export const secrets = (s: string) => `
create table ${s}.secret (
  id int generated always as identity primary key,
  name text not null unique,
  version int not null,
  tasks text[],
  removed_ms bigint
);

create table ${s}.secret_version (
  secret_id int not null references ${s}.secret,
  version int not null,
  key_id text not null,
  wrapped bytea,
  sealed bytea,
  author text not null,
  reason text not null,
  changed_ms bigint not null,
  primary key (secret_id, version)
);
create index secret_version_key on ${s}.secret_version (key_id) where sealed is not null;

alter table ${s}.alarm
  add column seen_ms bigint,
  add column seen_by text,
  add column seen_why text;

create table ${s}.alarm_silence (
  id bigint generated always as identity primary key,
  rule text,
  subject text,
  from_ms bigint not null,
  until_ms bigint not null,
  author text not null,
  reason text not null,
  ended_ms bigint
);
create index alarm_silence_until on ${s}.alarm_silence (until_ms) where ended_ms is null;

create table ${s}.alarm_try (
  message_id bigint not null references ${s}.alarm_outbox on delete cascade,
  attempt int not null,
  at_ms bigint not null,
  node text not null,
  error text,
  primary key (message_id, attempt)
);

create table ${s}.run_origin (
  run_id bigint primary key,
  context text not null,
  created_ms bigint not null
);
create index run_origin_created on ${s}.run_origin (created_ms);
`;
