/**
 * Locks that outlive their holder by a grace time. Each lock has one row, which is never deleted, because it counts the fences. The holder
 * sends heartbeats; other processes measure by their own clocks how long it has been silent, as for sessions. Every change except a
 * heartbeat raises the version.
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
