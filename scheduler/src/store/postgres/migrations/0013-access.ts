/**
 * Users of the HTTP API, their sign-ins and tokens; the audit log; and the answers stored under idempotency keys. Only hashes of secrets
 * are stored: of passwords, which users choose, by scrypt; of the other secrets, which are 256 random bits, by SHA-256.
 *
 * The row of a removed user stays, so that a name in the audit log never refers to another person. Creating the user again reuses the row.
 * The audit log has no foreign keys, because its entries stay when the things that they name are deleted.
 */
export const access = (s: string) => `
create table ${s}.user_account (
  id int generated always as identity primary key,
  name text not null unique,
  hash text not null,
  role text not null,
  created_ms bigint not null,
  created_by text not null,
  disabled_ms bigint,
  removed_ms bigint
);
create table ${s}.sign_in (
  hash bytea primary key,
  user_id int not null references ${s}.user_account,
  created_ms bigint not null,
  expires_ms bigint not null
);
create index sign_in_user on ${s}.sign_in (user_id);
create table ${s}.token (
  id int generated always as identity primary key,
  user_id int not null references ${s}.user_account,
  name text not null,
  hash bytea not null,
  role text not null,
  scopes text[],
  created_ms bigint not null,
  expires_ms bigint not null,
  revoked_ms bigint
);
create unique index token_name on ${s}.token (user_id, name) where revoked_ms is null;

create table ${s}.audit (
  id bigint generated always as identity primary key,
  at_ms bigint not null,
  who text not null,
  act text not null,
  about text not null,
  named text not null,
  before jsonb,
  after jsonb,
  why text not null
);
create index audit_named on ${s}.audit (about, named, id);
create index audit_who on ${s}.audit (who, id);

create table ${s}.idempotent_answer (
  who text not null,
  key text not null,
  request bytea not null,
  token uuid not null default gen_random_uuid(),
  run_ids float8[] not null,
  begun_ms bigint not null,
  status smallint,
  answer jsonb,
  version int,
  primary key (who, key)
);
create index idempotent_answer_begun on ${s}.idempotent_answer (begun_ms);
`;
