/**
 * Sign-ins by a number, so that their user can see and end each, with when, from where and in what browser it was begun, and when it was
 * last used. Older code makes and uses them as before: of its sign-ins nothing of this is known, and they count as used when they began.
 */
export const signIns = (s: string) => `
alter table ${s}.sign_in
  add column id bigint generated always as identity,
  add column seen_ms bigint,
  add column address text,
  add column agent text;
create unique index sign_in_id on ${s}.sign_in (id);
`;
