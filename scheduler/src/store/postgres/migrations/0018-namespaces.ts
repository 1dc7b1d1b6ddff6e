/**
 * Users' roles in single namespaces, in addition to or instead of a role in all of them; tokens that are valid only in some namespaces; and
 * users whom an external provider signs in. Such users have no password, and the provider's name for a user identifies the user.
 *
 * A namespace is a part of names (see namespace.ts), so no table of tasks or runs changes. Nodes of the previous version treat a role that
 * is null as no role.
 */
export const namespaces = (s: string) => `
alter table ${s}.user_account
  alter column role drop not null,
  alter column hash drop not null,
  add column grants jsonb not null default '[]',
  add column issuer text,
  add column subject text;
create unique index user_account_subject on ${s}.user_account (issuer, subject) where subject is not null;
alter table ${s}.token add column namespaces text[];
`;
