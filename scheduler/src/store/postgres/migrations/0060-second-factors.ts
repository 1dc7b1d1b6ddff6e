/**
 * Second factors of users: a TOTP secret (RFC 6238), sealed by a key for secrets if there is one, and the hashes of unused recovery codes.
 * `last_step` is the time step of the last accepted code: no code of that step or of an earlier one is accepted. Older code asks for no
 * second factor, and leaves these rows as they are.
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
