/** The worker thread behind `StandIn`: see cluster/stand-in.ts. It sends requests only while the process's event loop is blocked. */
import { parentPort, workerData } from "node:worker_threads";
import { machineClock, pause } from "../base/clock.ts";
import { isCarillonError } from "../base/errors.ts";
import { SharedStanding, type StandInPlace, type Standing } from "../cluster/stand-in.ts";
import type { ThreadData } from "./stand-in-data.ts";

/** The interval in ms at which the thread checks whether the event loop runs. */
const lookMs = 50;
/**
 * The event loop counts as blocked after this time without a tick, in ms. The thread shall act within 250 ms; the remaining 50 ms
 * are for its queries.
 */
const stillMs = 200;
/**
 * If a check of this thread is later than this (ms), the thread itself was not running, so the silence of the event loop is no proof that
 * it is blocked.
 */
const lateMs = 100;
const giveBackEveryMs = 250;
/** A leader whose event loop is blocked for this time (ms) gives up its leadership. */
const resignAfterMs = 1_000;
/** How long a connection that was opened for a blocked event loop stays open for the next time, in ms. */
const keepOpenMs = 60_000;
/** The code for heartbeats is loaded this time after the start (ms), so that a short-lived process does not load it. */
const loadAfterMs = 1_000;

const { buffer, boundMs, beatMs, place } = workerData as ThreadData;
let opener: Promise<() => StandInPlace> | undefined;
/** Loads either the code for the store or the code for servers, depending on where the session is. */
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
// The port is unreferenced, so that this thread does not keep the process alive.
parentPort?.unref();

/**
 * Acts until the event loop runs again: sends a heartbeat at once and then at each interval, gives up the leadership, and
 * releases claims whose runs have not started. After `boundMs`, it ends the session.
 */
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
      // `alone` is true if no other worker can execute the claimed runs. Releasing the claims would then be useless.
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
  // The marks of started runs are read after the list of claims, so a listed claim without a mark has not started and can be released.
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
    // Subtracts only long delays, in which this thread did not run either. Short delays are not subtracted: on a busy machine every
    // check is slightly late, and a blocked event loop must still be detected.
    else if (lateByMs > lateMs) seenMs += lateByMs;
    if (nowMs - seenMs < stillMs || standing.sessionId === 0 || shared.acts) {
      if (store && !shared.acts && nowMs - usedMs > keepOpenMs) await closeStore();
      continue;
    }
    shared.takeOver();
    try {
      await standIn(seenMs);
    } catch (error) {
      // The session then gets no heartbeats from this thread. The process will find its session in doubt, and log the doubt and the error.
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
