/**
 * Locks for users. Each name in use has a row with the line of its holders and waiters; each process that uses locks has a session. A line
 * is an array in one row and has no rows of its own, because an UPDATE decides on the newest version of its row, whatever its snapshot was:
 * the statement that joins the line thus knows who is first.
 *
 * `lock_fence` counts the lower half of fences, for all names together, so that a row can be forgotten. `lock_base` gives the higher half
 * to services that may forget their own count, and to the cluster each time it moves to another service.
 */
export const locks = (s: string) => `
create table ${s}.lock (
  name text primary key,
  permits int not null,
  line text[] not null,
  fences bigint[] not null
) with (fillfactor = 50);
create table ${s}.lock_session (
  id bigint generated always as identity primary key,
  beat bigint not null default 0,
  timeout_ms int not null,
  seen_ms bigint not null
) with (fillfactor = 50);
create sequence ${s}.lock_fence;
create sequence ${s}.lock_base maxvalue 2147483647;
alter table ${s}.cluster add column lock_era bigint not null default 0;
`;
