/**
 * A process that died with the former primary may have started runs of which nothing is left. The store counts the most that these can be:
 * runs that were due after `back_to_ms`, the last time known of any process, and before the recovery, and that no reporting process had
 * claimed.
 */
export const recoveryDoubt = (s: string) => `
alter table ${s}.recovery
  add column back_to_ms bigint,
  -- Of those, the ones that the store had when the recovery ended; slots that are planned after it are counted when somebody asks.
  add column waiting int not null default 0;
`;
