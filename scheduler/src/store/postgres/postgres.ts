import { type Clock, settlesWithin, systemClock } from "../../base/clock.ts";
import { type Log, silentLog } from "../../base/log.ts";
import { type Random, systemRandom } from "../../base/random.ts";
import { firstOfEach } from "../../run/first-of-each.ts";
import type { Store } from "../store.ts";
import { accessStore } from "./access/access.ts";
import { auditStore } from "./access/audit.ts";
import { auditChainStore } from "./access/audit-chain.ts";
import { hookStore } from "./access/hooks.ts";
import { quotaStore } from "./access/quotas.ts";
import { secondFactorStore } from "./access/second-factors.ts";
import { secretStore } from "./access/secrets.ts";
import { workerStore } from "./access/workers.ts";
import { alarmStore } from "./alarms/alarms.ts";
import { answerStore } from "./answers.ts";
import { claimStore, settleStanding } from "./claims/claims.ts";
import { Announcer } from "./cluster/announcer.ts";
import { transactionCheck } from "./cluster/callers-transaction.ts";
import { readClock, readRawClock } from "./cluster/clock.ts";
import { drainStore } from "./cluster/drains.ts";
import { graceLockStore } from "./cluster/grace-locks.ts";
import { lockStore } from "./cluster/locks.ts";
import { sessionStore } from "./cluster/sessions.ts";
import { signalStore } from "./cluster/signals.ts";
import { Database, type Driver } from "./database.ts";
import { awaitDisk } from "./enqueue/durability.ts";
import { eventStore } from "./events/events.ts";
import { figureStore } from "./figures.ts";
import { flowStore } from "./flow/flow.ts";
import { migrate } from "./migrate.ts";
import { Recovery } from "./recovery/recovery.ts";
import { type StandingRow, standingSql } from "./recovery/standing.ts";
import { browseStore } from "./runs/browse.ts";
import { deadLetterStore } from "./runs/dead-letters.ts";
import { operationStore } from "./runs/operations.ts";
import { routeStore } from "./runs/routes.ts";
import { runStore } from "./runs/runs.ts";
import { statisticsStore } from "./statistics/statistics.ts";
import { appliedStore } from "./tasks/applied.ts";
import { calendarStore } from "./tasks/calendars.ts";
import { groupStore } from "./tasks/groups.ts";
import { historyStore, makeWhole } from "./tasks/history.ts";
import { planStore } from "./tasks/plans.ts";
import { taskStore } from "./tasks/tasks.ts";

export interface PostgresOptions {
  url: string;
  /** The URL of the connection that receives signals by LISTEN; default: `url`. */
  listenUrl?: string | undefined;
  schema?: string;
  clock?: Clock;
  random?: Random;
  log?: Log;
  connectionsMax?: number;
  /** The time limit for opening a connection and for the answer to a heartbeat, in ms; default: 5,000. */
  answerMs?: number;
  revive?: () => Promise<void>;
  driver?: Driver;
  /** False to refuse an older schema instead of migrating it; default: true. */
  migrate?: boolean;
  /** True to reject at once with STORE_UNREACHABLE if the store is unavailable, instead of waiting for it. */
  failFast?: boolean;
  /** Called when the store has gone back to an earlier state, so that data read before may no longer be in the store. */
  onBack?: () => void;
  /**
   * True: acknowledged writes are remembered from the start, because a standby may lack them. Default: they are remembered until the store
   * reports that no standby is connected, and again once it has reported one.
   */
  standby?: boolean;
  /**
   * How the history is partitioned. "daily" (default): one partition per day; the partitions needed by the first write are created.
   * "there": the partitions exist already. "one": a single partition, for a new store whose time jumps, as in a test.
   */
  partitions?: "daily" | "there" | "one";
  /**
   * False: every heartbeat reads the waiting runs, however long that takes, as tests with simulated time need. Default: if heartbeats are
   * slow, the runs are read by a separate statement, and a heartbeat returns the last result.
   */
  readsBeside?: boolean;
  signal?: AbortSignal;
  /** Aborted when this process no longer waits for the store, not even for its opening. Then all connections are closed at once. */
  abandon?: AbortSignal;
}

const closeWithinMs = 5_000;

/**
 * Opens the store: waits for the server (or fails at once, with `failFast`), migrates the schema, and creates the first partitions.
 * @throws STORE_UNREACHABLE, STORE_REFUSED, STORE_NEWER, STORE_OLDER, STORE_UNSUPPORTED, STORE_READ_ONLY, STORE_FOREIGN, STORE_PARTITIONS
 * or another STORE_… error
 */
export async function openPostgres(options: PostgresOptions): Promise<Store> {
  const database = new Database({
    schema: "carillon",
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
    connectionsMax: 8,
    ...options,
  });
  const { partitions = "daily", abandon } = options;
  abandon?.addEventListener("abort", () => database.abandon(), { once: true });
  const clock = () => readClock(database);
  const history = historyStore(database);
  const tasks = taskStore(database);
  let clusterId = "";
  try {
    const prepare = async () => {
      await migrate(database, await readRawClock(database), options.migrate);
      // Creates the partitions that the first write needs. Only the leader drops old ones, because a process that only reads may not know
      // the retention.
      if (partitions === "daily") await history.rotate((await clock()).ms, null);
      if (partitions === "one") await makeWhole(database);
    };
    await (options.failFast ? prepare() : database.persist(prepare, options.signal));
    const look = () =>
      database.query<StandingRow & { id: string }>(
        "",
        `select ${standingSql(database.schema)}, (select id from ${database.schema}.cluster) as id`,
      );
    const { schema } = options;
    const onBack = () => {
      tasks.forget();
      options.onBack?.();
    };
    database.recoverBy(recoveryOf(database, { schema, onBack }));
    for (const row of await (options.failFast ? look() : database.persist(look, options.signal))) {
      database.told(row);
      clusterId = row.id;
    }
  } catch (error) {
    await database.close();
    throw error;
  }
  if (options.standby) database.memory.standbys(true);
  const announcer = new Announcer(database);
  const requireTransaction = transactionCheck(database, clusterId);
  const runs = runStore(database, announcer, requireTransaction);
  return {
    sessions: sessionStore(database, options.readsBeside),
    tasks,
    plans: planStore(database),
    runs,
    deadLetters: deadLetterStore(database),
    operations: operationStore(database, tasks, runs),
    groups: groupStore(database),
    calendars: calendarStore(database, tasks),
    claims: claimStore(database, requireTransaction),
    routes: routeStore(database),
    flow: flowStore(database),
    secrets: secretStore(database),
    hooks: hookStore(database),
    history,
    signals: signalStore(database),
    drains: drainStore(database),
    graceLocks: graceLockStore(database),
    locks: lockStore(database),
    workers: workerStore(database),
    alarms: alarmStore(database),
    applied: appliedStore(database),
    figures: figureStore(database),
    browse: browseStore(database, tasks, runs),
    access: accessStore(database),
    quotas: quotaStore(database),
    secondFactors: secondFactorStore(database),
    audit: { ...auditStore(database), ...auditChainStore(database) },
    answers: answerStore(database),
    events: eventStore(database),
    statistics: statisticsStore(database),
    clock,
    async close(withinMs = closeWithinMs) {
      // If some runs have not been signalled by then, the workers' polls find them.
      await settlesWithin(database.clock, withinMs / 2, Promise.all([announcer.close(), awaitDisk(database)]));
      await database.close(withinMs / 2);
    },
  };
}

function recoveryOf(
  database: Database,
  { schema = "carillon", onBack }: { schema: string | undefined; onBack: () => void },
): Recovery {
  const { schema: s, clock, memory, log, closing: signal } = database;
  return new Recovery({
    s,
    schema,
    clock,
    log,
    memory,
    signal,
    onBack,
    transaction: (work) => database.recovering(work),
    settle: async (settlements, nowMs) =>
      (await settleStanding(database, firstOfEach(settlements).first, nowMs)).length,
  });
}
