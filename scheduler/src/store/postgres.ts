import { type Clock, systemClock } from "../clock.ts";
import { type Log, silentLog } from "../log.ts";
import { type Random, systemRandom } from "../random.ts";
import type { Store } from "../store.ts";
import { accessStore } from "./access.ts";
import { alarmStore } from "./alarms.ts";
import { answerStore } from "./answers.ts";
import { appliedStore } from "./applied.ts";
import { auditStore } from "./audit.ts";
import { browseStore } from "./browse.ts";
import { calendarStore } from "./calendars.ts";
import { claimStore } from "./claims.ts";
import { Database, type Driver } from "./database.ts";
import { deadLetterStore } from "./dead-letters.ts";
import { figureStore } from "./figures.ts";
import { flowStore } from "./flow.ts";
import { graceLockStore } from "./grace-locks.ts";
import { groupStore } from "./groups.ts";
import { historyStore } from "./history.ts";
import { lockStore } from "./locks.ts";
import { migrate } from "./migrate.ts";
import { operationStore } from "./operations.ts";
import { planStore } from "./plans.ts";
import { routeStore } from "./routes.ts";
import { runStore } from "./runs.ts";
import { secretStore } from "./secrets.ts";
import { sessionStore } from "./sessions.ts";
import { signalStore } from "./signals.ts";
import { taskStore } from "./tasks.ts";
import { workerStore } from "./workers.ts";

export interface PostgresOptions {
  url: string;
  schema?: string;
  clock?: Clock;
  random?: Random;
  log?: Log;
  connectionsMax?: number;
  /** A connection that does not stand, a heartbeat that is not answered within this has failed; default 5 s. */
  answerMs?: number;
  revive?: () => Promise<void>;
  driver?: Driver;
  /** Default true; false: an older schema is refused. */
  migrate?: boolean;
  /** Do not wait for a store that is away: reject with STORE_UNREACHABLE at once. */
  failFast?: boolean;
  /** Make the partitions that the first writer needs. Default true; false: they are there. */
  partitions?: boolean;
  signal?: AbortSignal;
}

/**
 * Opens the store: waits for the server (or fails fast), migrates, makes the first partitions.
 * @throws STORE_UNREACHABLE, STORE_REFUSED, STORE_NEWER, STORE_OLDER, STORE_UNSUPPORTED, STORE_READ_ONLY
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
  const clock = async () => {
    const [row] = await database.ask<{ ms: number }>(
      "clock",
      "select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms",
    );
    return row?.ms ?? Number.NaN;
  };
  const history = historyStore(database);
  try {
    const prepare = async () => {
      const nowMs = await clock();
      await migrate(database, nowMs, options.migrate);
      // Makes what the first writer needs. What is old is the leader's to drop: whoever only looks may know no retention.
      if (options.partitions !== false) await history.rotate(nowMs, null);
    };
    await (options.failFast ? prepare() : database.persist(prepare, options.signal));
  } catch (error) {
    await database.close();
    throw error;
  }
  const [tasks, runs, claims] = [taskStore(database), runStore(database), claimStore(database)];
  return {
    sessions: sessionStore(database),
    tasks,
    plans: planStore(database),
    runs,
    deadLetters: deadLetterStore(database),
    operations: operationStore(database, tasks, runs),
    groups: groupStore(database),
    calendars: calendarStore(database, tasks.replan),
    claims,
    routes: routeStore(database),
    flow: flowStore(database, claims),
    secrets: secretStore(database),
    history,
    signals: signalStore(database),
    graceLocks: graceLockStore(database),
    locks: lockStore(database),
    workers: workerStore(database),
    alarms: alarmStore(database),
    applied: appliedStore(database),
    figures: figureStore(database),
    browse: browseStore(database, tasks, runs),
    access: accessStore(database),
    audit: auditStore(database),
    answers: answerStore(database),
    clock,
    close: () => database.close(),
  };
}
