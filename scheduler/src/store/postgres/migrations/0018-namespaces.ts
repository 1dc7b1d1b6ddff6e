/**
 * Roles in one namespace, beside or instead of the role everywhere; tokens that are valid in some namespaces only; and users whom an
 * external provider signs in. Such a user has no password, and is identified by the provider's name for the user.
 *
 * A namespace is a part of names (see namespace.ts), so no table of tasks or runs changes. A node of the previous version takes a role that
 * is null for no role.
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
