/**
 * A process that crashed with the former primary may have started runs of which the store has no record. The store counts how many there
 * can be at most: runs that were due between `back_to_ms`, the last time that any process has reported, and the recovery, and that no
 * reporting process had claimed.
 */
export const recoveryDoubt = (s: string) => `
alter table ${s}.recovery
  add column back_to_ms bigint,
  -- Of those, the ones that the store had when the recovery ended; slots that are planned after it are counted when somebody asks.
  add column waiting int not null default 0;
`;
