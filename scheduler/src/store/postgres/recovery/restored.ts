import type { Change, SqlClient } from "../../../base/change.ts";
import { pause } from "../../../base/clock.ts";
import { CarillonError } from "../../../base/errors.ts";
import { audited } from "../access/audit.ts";
import type { Database } from "../database.ts";
import { newestKnown, schemaVersion } from "../migrate.ts";
import { withDatabase } from "../with-database.ts";
import { skipAhead } from "./skip.ts";
import { markIntactSql } from "./standing.ts";

/**
 * How far numbers are moved: above all numbers that may have been drawn after the backup and before the failure. `numbers` covers hours at
 * the highest rates.
 */
const skips = { numbers: 1_000_000_000, smallNumbers: 1_000, terms: 1_000_000, bases: 1_000 };

/** The longest time, in ms, for which sessions are watched, even if a session's timeout is longer. */
const longestWatchMs = 10_000;
/**
 * The shortest time, in ms, for which sessions are watched. A live process whose session is not in the backup usually opens its session
 * again within less.
 */
const leastWatchMs = 5_000;
const lookEveryMs = 250;

export interface Skipped {
  runId: number;
  fence: number;
  term: number;
}

/**
 * Prepares a restored store for use: numbers that may have been drawn after the backup are skipped, and the store's data counts as
 * complete. First, sessions are watched for the longest timeout of those open in the backup, at least 5 s and at most 10 s. A session that
 * sends heartbeats or is opened meanwhile belongs to a live process.
 * @returns the first numbers that may be drawn from now on
 * @throws STORE_IN_USE if a session sends heartbeats or was opened meanwhile, STORE_OLDER; nothing was changed
 */
export const skipNumbers = (url: string, schema: string, change: Change): Promise<Skipped> =>
  withDatabase({ url, schema }, async (database) => {
    const { number } = await schemaVersion(database);
    if (number > 0 && number < newestKnown)
      throw new CarillonError(
        "STORE_OLDER",
        `the database is at version ${number}, this Carillon needs ${newestKnown}`,
        {
          hint: "Nothing was changed. Run `carillon migrate`, then `carillon restored`, before any node starts.",
        },
      );
    await requireNobodyAtWork(database);
    return database.transaction((client) => goOnAbove(client, database.schema, schema, change));
  });

/**
 * Moves the numbers forward, marks the store as complete, ends a recovery in progress, and sets the shift of the store's clock to 0. No
 * other process may use the store meanwhile.
 */
export async function goOnAbove(client: SqlClient, s: string, schema: string, change: Change): Promise<Skipped> {
  await client.query("set local carillon.recovery = on");
  const term = await skipAhead(client, s, schema, skips);
  // Each process compares the number of recoveries with the number that it read last. A higher one shows it that the store has lost data.
  await client.query(
    `update ${s}.cluster set timeline = ${s}.log_timeline(), system_id = ${s}.store_system(), recovering_since_ms = null,
       recovery = recovery + ${skips.smallNumbers}, clock_shift_ms = 0, clock_number = clock_number + 1, clock_since_ms = null`,
  );
  await client.query(markIntactSql(s));
  await forgetForeignTransactions(client, s);
  const { rows: next } = await client.query(
    `select r.last_value + 1 as "runId", f.last_value + 1 as fence from ${s}.run_id r, ${s}.fence f`,
  );
  const skipped = {
    runId: Number(next[0]?.runId),
    fence: Number(next[0]?.fence),
    term: term + 1,
  };
  await audited(client, s, {
    atMs: change.nowMs,
    who: change.author,
    act: "restore",
    about: "cluster" as const,
    named: schema,
    before: null,
    after: skipped,
    why: change.reason,
  });
  return skipped;
}

/**
 * Removes transaction numbers that this server has not issued yet: the server from which a dump was made has issued them. Log lines with
 * such numbers would count as lines that are still to be written, and would be returned again at each read.
 */
async function forgetForeignTransactions(client: SqlClient, s: string): Promise<void> {
  const { rows } = await client.query(
    "select 1 from pg_attribute where attrelid = to_regclass($1) and attname = 'xid' and not attisdropped",
    [`${s}.run_log`],
  );
  // If the schema does not have the column yet, the first process that starts adds it.
  if (rows.length === 0) return;
  await client.query(`update ${s}.run_log set xid = null where xid >= pg_snapshot_xmax(pg_current_snapshot())`);
}

interface OpenSession {
  kind: "session" | "locks";
  id: number;
  name: string;
  beat: number;
  timeoutMs: number;
}

/** Watches the open sessions for some time. @throws STORE_IN_USE if a process uses the store */
async function requireNobodyAtWork(database: Database): Promise<void> {
  const { clock, schema: s } = database;
  const open = () =>
    database.ask<OpenSession>(
      "",
      `select 'session' as kind, id, format('%s %s (process %s on %s)', role, node, pid, host) as name, beat, timeout_ms as "timeoutMs"
       from ${s}.session where ended_ms is null
       union all
       select 'locks', id, format('a process that uses locks (lock session %s)', id), beat, timeout_ms from ${s}.lock_session
       order by kind desc, name`,
    );
  const keyOf = ({ kind, id }: OpenSession) => `${kind} ${id}`;
  const first = await open();
  const beats = new Map(first.map((session) => [keyOf(session), session.beat]));
  const watchMs = Math.min(Math.max(leastWatchMs, ...first.map(({ timeoutMs }) => timeoutMs)), longestWatchMs);
  const until = clock.monotonic() + watchMs;
  const live = new Map<string, string>();
  for (let now = first; ; now = await open()) {
    for (const session of now) if (beats.get(keyOf(session)) !== session.beat) live.set(keyOf(session), session.name);
    if ((now.length > 0 && live.size >= now.length) || clock.monotonic() >= until) break;
    await pause(clock, lookEveryMs);
  }
  if (live.size === 0) return;
  throw new CarillonError("STORE_IN_USE", `processes are at work with this store: ${[...live.values()].join(", ")}`, {
    hint: "Nothing was changed. Stop these processes, or let them use another store; then run `carillon restored` again.",
  });
}
