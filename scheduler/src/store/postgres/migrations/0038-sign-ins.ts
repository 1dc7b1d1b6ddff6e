/**
 * Sign-ins get a number, so that users can list and end their sign-ins. They record when, from which address and in which browser they
 * began, and when they were last used. Older code creates and uses sign-ins as before: these lack the details, and count as last used at
 * their start.
 */
export const signIns = (s: string) => `
alter table ${s}.sign_in
  add column id bigint generated always as identity,
  add column seen_ms bigint,
  add column address text,
  add column agent text;
create unique index sign_in_id on ${s}.sign_in (id);
`;
