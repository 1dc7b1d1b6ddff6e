/**
 * Roles in one namespace, beside or instead of the role everywhere; tokens that are good in some namespaces only; and users whom
 * another provider signs in: they have no password, and are known by what the provider calls them.
 *
 * A namespace is a part of names (see namespace.ts), so no table of tasks and runs changes. A node of the version before takes a
 * role that is null for none at all.
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
