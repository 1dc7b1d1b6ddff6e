/**
 * Cluster time is the store's clock plus a shift. The shift is 0 until the store's clock steps. Then the shift makes up for the step, so
 * that every process, also one that starts later, continues with the earlier time. Each change of the shift raises the number. The columns
 * of a session hold how far its node's clocks were from the store's at its last beat.
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
