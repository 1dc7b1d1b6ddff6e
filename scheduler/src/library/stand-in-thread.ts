/** The thread of `StandIn`: see cluster/stand-in.ts. It touches the store only while the process's event loop stands still. */
import { parentPort, workerData } from "node:worker_threads";
import { machineClock, pause } from "../base/clock.ts";
import { isCarillonError } from "../base/errors.ts";
import { SharedStanding, type StandInPlace, type Standing } from "../cluster/stand-in.ts";
import type { ThreadData } from "./stand-in-data.ts";

/** Between two looks at whether the event loop turns. */
const lookMs = 50;
/** Without a turn for this long it stands still. The rest of 250 ms is for what is asked of the store. */
const stillMs = 200;
/** The whole process stood still, this thread too, when a look comes this much late: of that time nothing is known of the event loop. */
const lateMs = 100;
const giveBackEveryMs = 250;
/** A leader whose event loop stands still for this long is no leader. */
const resignAfterMs = 1_000;
/** A store connection that was opened for a standstill serves the next one, if that comes soon. */
const keepOpenMs = 60_000;
/** What is needed at a standstill is loaded before, but a process that ends sooner than this pays nothing for it. */
const loadAfterMs = 1_000;

const { buffer, boundMs, beatMs, place } = workerData as ThreadData;
let opener: Promise<() => StandInPlace> | undefined;
/** No more of the code is loaded than this process's place needs. */
const open = () => {
  opener ??=
    "store" in place
      ? import("../store/postgres/cluster/stand-in.ts").then((of) => () => of.openStandInStore(place.store))
      : import("../remote/stand-in.ts").then((of) => () => of.openRemoteStandIn(place.servers));
  return opener;
};
const shared = new SharedStanding(buffer);
const standing: Standing = { sessionId: 0, term: null, server: null };
let store: StandInPlace | undefined;
let usedMs = 0;

parentPort?.on("message", (told: Partial<Standing>) => void Object.assign(standing, told));
// The process ends when all else in it has ended.
parentPort?.unref();

/** The first proof of life, and then one an interval; what is claimed and has not started, as soon as it is seen. */
async function standIn(sinceMs: number): Promise<void> {
  store ??= (await open())();
  const { sessionId, term, server } = standing;
  let [beatAt, gaveBackAt] = [0, 0];
  let resigned = term === null;
  let alone = true;
  while (shared.acts) {
    const nowMs = machineClock.monotonic();
    if (nowMs - sinceMs > boundMs) {
      await store.end(sessionId, boundMs);
      return;
    }
    if (nowMs - beatAt >= beatMs) {
      const found = await store.prove(sessionId, nowMs - sinceMs);
      if (!found.alive || (server !== null && found.server !== server)) return;
      shared.sureUntilMs = found.sureUntilMs;
      // With nobody to take them, claims would only come back.
      alone = found.alone;
      beatAt = nowMs;
    }
    if (shared.acts && !alone && nowMs - gaveBackAt >= giveBackEveryMs) {
      await giveBack(store, sessionId);
      gaveBackAt = nowMs;
    }
    if (shared.acts && !resigned && nowMs - sinceMs >= resignAfterMs) {
      shared.resigned = true;
      await store.resign(term as number, "its event loop stands still");
      resigned = true;
    }
    await pause(machineClock, lookMs);
  }
}

async function giveBack(from: StandInPlace, sessionId: number): Promise<void> {
  const claims = await from.claims(sessionId);
  const started = shared.started();
  if (started === null) return;
  const waiting = claims.filter(({ fence }) => !started.has(fence));
  // Looked at last: nothing that was claimed when the store answered and had no mark has started then.
  if (waiting.length > 0 && shared.returning()) await from.giveBack(sessionId, waiting);
}

async function watch(): Promise<never> {
  const beganMs = machineClock.monotonic();
  let [seenTicks, seenMs, lookedMs] = [shared.ticks, beganMs, beganMs];
  for (;;) {
    await pause(machineClock, lookMs);
    const nowMs = machineClock.monotonic();
    if (nowMs - beganMs > loadAfterMs) await open();
    const lateByMs = nowMs - lookedMs - lookMs;
    lookedMs = nowMs;
    if (shared.ticks !== seenTicks) [seenTicks, seenMs] = [shared.ticks, nowMs];
    // Only the time in which this thread had no turn either: on a busy machine each look may come late, and the standstill is seen all the same.
    else if (lateByMs > lateMs) seenMs += lateByMs;
    if (nowMs - seenMs < stillMs || standing.sessionId === 0 || shared.acts) {
      if (store && !shared.acts && nowMs - usedMs > keepOpenMs) await closeStore();
      continue;
    }
    shared.takeOver();
    try {
      await standIn(seenMs);
    } catch (error) {
      // The process finds its session in doubt, as without this thread; it tells of that, and of the store.
      parentPort?.postMessage({ failed: isCarillonError(error) ? error.code : String(error) });
    } finally {
      shared.busy = false;
    }
    usedMs = lookedMs = machineClock.monotonic();
  }
}

async function closeStore(): Promise<void> {
  const closing = store;
  store = undefined;
  await closing?.close();
}

await watch();
