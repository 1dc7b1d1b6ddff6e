/**
 * Locks that outlive their holder by a grace: one row each, kept for ever because of its fence. Whoever holds it beats;
 * observers judge silence by their own clocks, as for sessions. The version changes with every change but a beat.
 */
export const graceLocks = (s: string) => `
create table ${s}.grace_lock (
  name text primary key,
  version bigint not null default 0,
  fence bigint not null default 0,
  holder uuid,
  beat bigint not null default 0,
  timeout_ms int not null,
  record jsonb not null
) with (fillfactor = 50);
`;
