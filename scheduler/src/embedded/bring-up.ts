import { pause, systemClock } from "../base/clock.ts";
import { findBinaries } from "./binaries.ts";
import { dataMajor, initialise, markStore, requireNew, wasInterrupted } from "./data.ts";
import { fileFailure, overdueFailure, throwIfAborted } from "./failure.ts";
import { freeBytes } from "./log-file.ts";
import { ensurePlace, type Place, rootHome } from "./place.ts";
import { attend, type Presence } from "./presence.ts";
import { serverProcesses } from "./processes.ts";
import { clearRemains, launch } from "./server.ts";
import { holdStartLock } from "./start-lock.ts";

export type Started = "first" | "again" | "attached" | "recovered";

export interface BringUp {
  readonly presence: Presence;
  readonly started: Started;
}

export interface BringUpOptions {
  binaries?: string | undefined;
  /** True: creates a store if none exists. False: throws STORE_MISSING instead. */
  create: boolean;
  log: (line: string) => void;
  signal?: AbortSignal | undefined;
}

/**
 * The time limit for bringing a server up, in ms. A recovery reads about `max_wal_size` of log, which is 512 MB in a new store,
 * so this is enough for a slow disk too.
 */
const bringUpMs = 120_000;

const pollMs = 10;

/**
 * Makes this process a user of a running server; starts or recovers the server if needed. If a server runs and its role and database exist,
 * the process attaches without a lock. Otherwise it waits for the start lock and checks again while it holds the lock, so that of many
 * processes that start at once only one starts the server.
 */
export async function bringUp(place: Place, options: BringUpOptions): Promise<BringUp> {
  const deadline = new AbortController();
  const cancel = systemClock.after(bringUpMs, () => deadline.abort());
  const signal = options.signal ? AbortSignal.any([deadline.signal, options.signal]) : deadline.signal;
  try {
    await ensurePlace(place);
    const presence = await attend(place, signal);
    if (typeof presence !== "string") {
      if (presence.complete) return { presence, started: "attached" };
      presence.drop(); // another process started the server and is still creating the database, under the start lock
    }
    const release = await holdStartLock(place.run, signal);
    try {
      return await bringUpAlone(place, options, signal);
    } finally {
      await release();
    }
  } catch (error) {
    if (deadline.signal.aborted && !options.signal?.aborted)
      // The free space is unknown if the folder no longer exists.
      throw overdueFailure(bringUpMs, place.log, await freeBytes(place.home).catch(() => undefined));
    throwIfAborted(signal);
    throw fileFailure(error, `cannot be started in ${place.directory}`);
  } finally {
    cancel();
  }
}

/** Brings the server up; the caller holds the start lock. */
async function bringUpAlone(place: Place, options: BringUpOptions, signal: AbortSignal): Promise<BringUp> {
  for (;;) {
    const presence = await attend(place, signal);
    if (typeof presence !== "string") {
      if (!presence.complete) await presence.complement();
      return { presence, started: "attached" };
    }
    if (presence === "absent" && (await serverProcesses(place.data)).postmaster === undefined) {
      const brought = await start(place, options, signal);
      if (brought) return brought;
    }
    await pause(systemClock, pollMs, signal);
  }
}

/** Creates the data if needed and starts the server. @returns undefined if another server turned out to use the data */
async function start(
  place: Place,
  { binaries: given, create, log }: BringUpOptions,
  signal: AbortSignal,
): Promise<BringUp | undefined> {
  const major = await dataMajor(place);
  if (major === undefined) await requireNew(place, create);
  const copies = place.owner ? rootHome : place.home;
  const binaries = await findBinaries({ given, major, owner: place.owner, copies, signal, log });
  let started: Started = "first";
  if (major === undefined) {
    log(`no store was in ${place.home}: making an empty one, an embedded PostgreSQL ${binaries.version}`);
    await initialise(place, binaries, signal);
  } else {
    started = (await wasInterrupted(place)) ? "recovered" : "again";
    if (started === "recovered") log("the embedded PostgreSQL was interrupted: recovering it");
    await clearRemains(place, log);
  }
  await markStore(place);
  throwIfAborted(signal);
  const launched = await launch(place, binaries);
  try {
    for (;;) {
      const presence = await attend(place, signal);
      if (typeof presence !== "string") {
        if (!presence.complete) await presence.complement();
        return { presence, started };
      }
      const outcome = await launched.outcome();
      if (outcome === "taken") return undefined;
      if (outcome !== undefined) throw outcome;
      await pause(systemClock, pollMs, signal);
    }
  } catch (error) {
    // The start was cancelled, or the server has ended or answers with an error. Ends the server, because it has no users. If
    // another process attaches at this moment, that process starts the server again.
    await launched.end();
    throw error;
  }
}
