import { changesSweptMs, type Sweep } from "../../../cluster/sweeps.ts";
import { skippedSql } from "../access/audit-chain.ts";
import { unbegun } from "../states.ts";
import { goneSql } from "../tasks/releases.ts";

/** A claim that a session makes while the session is being ended is committed within this time, in ms. */
export const sweptAfterMs = 600_000;

/** If this many tasks have changed lately, the changed tasks are swept without a closer look at them. */
const changesRead = 100;
/** A table of counters larger than this many bytes, which may consist of deleted rows, is swept without being read. */
const countersRead = 512 * 1024;

/**
 * SQL conditions: the store may contain something for the sweep; $2 is the time. Each costs little however much the store contains, so some
 * are also true if the sweep finds nothing.
 */
const conditions = (s: string): Record<Sweep, string> => ({
  // Runs can be misplaced only after an edit, a resume or a removal; see `leftQuery`.
  changedTasks: `exists (
    select from (select changed_ms, version, paused_ms, resumed_ms, deleted_ms, row_number() over (order by changed_ms desc) as place
      from ${s}.task order by changed_ms desc limit ${changesRead}) t
    where changed_ms >= $2::bigint - ${changesSweptMs} and (place = ${changesRead} or deleted_ms is not null
      or paused_ms is null and (version > 1 or resumed_ms is not null)))`,
  expiredRuns: `exists (select from ${s}.run r where r.expires_ms <= $2 and ${unbegun})`,
  knownKeys: `exists (select from ${s}.known_key where until_ms <= $2)`,
  auditRows: `exists (select from ${s}.audit where ${skippedSql(s)})`,
  workerKeys: `exists (select from ${s}.worker_key where expires_ms <= $2 and revoked_ms is null)`,
  endedTasks: `exists (select from ${s}.plan where at_end and next_slot_ms is null and not paused)`,
  sessions: `exists (select from ${s}.session where ended_ms < $2::bigint - ${sweptAfterMs} and not swept)`,
  counters: `case when pg_relation_size('${s}.tally_delta') > ${countersRead} then true else exists (select from ${s}.tally_delta) end`,
  historySizes: `exists (select from ${s}.quota where history is not null)`,
  releases: `exists (select from ${s}.release where ${goneSql(s)})`,
});

/** SQL expression: the names of the sweeps for which the store may contain something. $2 is the time. */
export const sweepsSql = (s: string): string =>
  `array_remove(array[${Object.entries(conditions(s))
    .map(([sweep, condition]) => `case when ${condition} then '${sweep}' end`)
    .join(",\n    ")}], null)`;
