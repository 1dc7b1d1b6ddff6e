/** The thread of `StandIn`: see cluster/stand-in.ts. It uses the store only while the process's event loop is blocked. */
import { parentPort, workerData } from "node:worker_threads";
import { machineClock, pause } from "../base/clock.ts";
import { isCarillonError } from "../base/errors.ts";
import { SharedStanding, type StandInPlace, type Standing } from "../cluster/stand-in.ts";
import type { ThreadData } from "./stand-in-data.ts";

/** The time between two checks of the event loop. */
const lookMs = 50;
/**
 * The event loop counts as blocked after this long without a tick. Of the 250 ms allowed, the rest is for the thread's queries to the
 * store.
 */
const stillMs = 200;
/** If a check is this late, this thread did not run either, so the delay proves nothing about the event loop. */
const lateMs = 100;
const giveBackEveryMs = 250;
/** A leader whose event loop is blocked for this long resigns. */
const resignAfterMs = 1_000;
/** A store connection that was opened for a standstill is kept this long for the next one. */
const keepOpenMs = 60_000;
/** Code for a standstill is loaded in advance, but not in a process that ends earlier than this. */
const loadAfterMs = 1_000;

const { buffer, boundMs, beatMs, place } = workerData as ThreadData;
let opener: Promise<() => StandInPlace> | undefined;
/** Loads only the code for the kind of place that keeps this process's session. */
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
// The thread does not keep the process alive.
parentPort?.unref();

/** Sends a proof of life at once and then at each interval; releases claims that have not started, as soon as it sees them. */
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
      // If no other worker can run the claims, releasing them would be useless.
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
  // The marks are read after the store's answer: a claim in it that has no mark has not started, and is released.
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
    // Subtracts only delays in which this thread did not run either: on a busy machine each check may be a little late, and a standstill
    // must still be detected.
    else if (lateByMs > lateMs) seenMs += lateByMs;
    if (nowMs - seenMs < stillMs || standing.sessionId === 0 || shared.acts) {
      if (store && !shared.acts && nowMs - usedMs > keepOpenMs) await closeStore();
      continue;
    }
    shared.takeOver();
    try {
      await standIn(seenMs);
    } catch (error) {
      // Without this thread's beats the process finds its session in doubt, as it would without a thread, and logs that and this error.
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
