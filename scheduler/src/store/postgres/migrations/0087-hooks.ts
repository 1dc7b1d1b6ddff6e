/**
 * Incoming webhooks. A hook names the secret that verifies its requests, and the secret's value stays in `secret_version`. The row of a
 * removed hook stays, so that the versions of a later hook with the same name continue.
 */
export const hooks = (s: string) => `
create table ${s}.hook (
  name text primary key,
  version int not null,
  content jsonb not null,
  author text not null,
  reason text not null,
  changed_ms bigint not null,
  deleted_ms bigint
);
`;
