/**
 * Locks that outlive their holder by a grace time. Each lock has one row, which is kept for ever because of its fence. The holder sends
 * beats; observers judge silence by their own clocks, as for sessions. Every change except a beat raises the version.
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
