/**
 * Second factors of users: a TOTP secret (RFC 6238), encrypted with a key for secrets if one is configured, and the hashes of unused
 * recovery codes. `last_step` is the time step of the last accepted code: codes of this step and of earlier ones are refused. Older code
 * requests no second factor, and does not change these rows.
 */
export const secondFactors = (s: string) => `
create table ${s}.second_factor (
  user_id int primary key references ${s}.user_account,
  plain text,
  key_id text,
  wrapped bytea,
  sealed bytea,
  begun_ms bigint not null,
  -- null: its user has not shown a code of it yet.
  confirmed_ms bigint,
  last_step bigint not null default 0,
  guesses int not null default 0,
  guesses_since_ms bigint not null default 0
);
create table ${s}.recovery_code (
  user_id int not null references ${s}.user_account,
  hash bytea not null,
  primary key (user_id, hash)
);
alter table ${s}.sign_in add column second_factor boolean not null default false;
`;
