/**
 * Locks for users. Each name in use has a row with the queue of its holders and waiters; each process that uses locks has a session. The
 * queue is an array in that row and not rows of its own: an UPDATE reads the newest version of its row, whatever the statement's snapshot,
 * so the statement that appends to the queue also reads who is first.
 *
 * `lock_fence` counts the lower half of fences for all names together, so that the row of an unused name can be deleted. `lock_base` gives
 * the higher half to services that may lose their own counter, and to the cluster each time it changes to another service.
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
