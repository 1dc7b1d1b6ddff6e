/**
 * A process that died with the former primary may have started runs, and what it was acknowledged of that is lost with it. How many
 * those can be at most is counted: runs that became due after `back_to_ms`, the last that the store knew of any process, and before the
 * recovery, and that no process which told had claimed.
 */
export const recoveryDoubt = (s: string) => `
alter table ${s}.recovery
  add column back_to_ms bigint,
  -- Of those, the ones that the store had when the recovery ended; slots that are planned after it are counted when somebody asks.
  add column waiting int not null default 0;
`;
