/**
 * Cluster time is the store's clock plus a shift. The shift is 0 until the store's clock jumps, and then compensates for the jump, so that
 * cluster time continues without it for every process, even one that starts later. Each change of the shift raises `clock_number`. Two
 * columns of a session hold the difference between its node's clocks and the store's clock at the last heartbeat.
 */
export const storeClock = (s: string) => `
alter table ${s}.cluster
  add column clock_shift_ms float8 not null default 0,
  add column clock_number int not null default 0,
  -- Since when the shift is not 0, in cluster time; null: it is 0.
  add column clock_since_ms bigint;
alter table ${s}.session
  -- The store's clock (without the shift) less the session's cluster time, and less its machine's wall clock.
  add column clock_off_ms bigint,
  add column wall_off_ms bigint;
`;
