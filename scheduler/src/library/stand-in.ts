import { Worker } from "node:worker_threads";
import { type Clock, machineClock, pause, systemClock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import {
  noStandIn,
  notStarted,
  SharedStanding,
  type StandIn,
  type Standing,
  type StoodIn,
  unmarked,
} from "../cluster/stand-in.ts";
import type { RemoteWorkerSettings } from "../settings/remote-worker.ts";
import { beatMsOf } from "../settings/settings.ts";
import type { ThreadData } from "./stand-in-data.ts";

/**
 * The interval of ticks in ms. It is much shorter than the 200 ms after which the thread takes over, so that a late timer is not
 * mistaken for a blocked event loop.
 */
const tickMs = 50;
const quietLookMs = 10;
/**
 * The maximum time to wait for the thread, in ms. It is longer than the 5 s after which the thread's queries time out and are cancelled.
 */
const quietMostMs = 6_000;

export interface StandInOptions extends Omit<ThreadData, "buffer"> {
  clock: Clock;
  log: Log;
}

/** Closes the stand-in of a process that could not join the cluster. @throws `why` */
export async function closedFor(standIn: StandIn, why: unknown): Promise<never> {
  await standIn.close();
  throw why;
}

/** Returns the stand-in's options for a remote worker. */
export function remoteStandInOf(
  { servers, key, sessionTimeoutMs, standstillMs: boundMs }: RemoteWorkerSettings,
  log: Log,
): StandInOptions {
  const place = { servers: { servers, key, answerMs: sessionTimeoutMs / 3 } };
  return { place, beatMs: beatMsOf(sessionTimeoutMs), boundMs, clock: systemClock, log };
}

/**
 * Starts the thread from the file beside this one. If that fails, for example because a bundle does not contain the file, the process works
 * without the thread. The process then loses its session if a handler blocks the event loop for longer than the session timeout.
 */
export function openStandIn({ clock, log, ...data }: StandInOptions): StandIn {
  // `import.meta.url` is undefined in a CommonJS bundle, where a module has no URL. The thread's file cannot be found then.
  const here: string | undefined = import.meta.url;
  // No thread is started with a virtual clock, which does not advance in the thread, nor from TypeScript sources, as in this
  // project's own tests, because some Node versions cannot load the thread's file as TypeScript.
  if (clock !== systemClock || here?.endsWith(".ts")) return noStandIn;
  const shared = new SharedStanding();
  const without = (error: unknown) =>
    log.warn(
      { error: messageOf(error) },
      "no thread stands in for this process's event loop: a handler that computes for longer than the session costs it; see docs/tasks/handlers.md",
    );
  try {
    const { NODE_OPTIONS: _, ...env } = process.env;
    if (here === undefined) throw new Error("this bundle has left out the file of the thread");
    const thread = new Worker(new URL("./stand-in-thread.js", import.meta.url), {
      workerData: { buffer: shared.buffer, ...data } satisfies ThreadData,
      name: "carillon stand-in",
      execArgv: [],
      env,
      resourceLimits: { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 2 },
    });
    thread.unref();
    return new ThreadedStandIn(shared, thread, clock, log, without);
  } catch (error) {
    without(error);
    return noStandIn;
  }
}

class ThreadedStandIn implements StandIn {
  readonly #shared: SharedStanding;
  readonly #thread: Worker;
  readonly #clock: Clock;
  readonly #listeners: ((stood: StoodIn) => void)[] = [];
  /** The free indexes in the shared table of marks; a mark says that a claim has started. */
  readonly #free: number[];
  /** This process's monotonic clock minus the machine's monotonic clock, in ms. */
  readonly #shiftMs: number;
  #stopTicking = (): void => undefined;
  #settledTimes = 0;
  #returnsSeen = 0;
  /** True once the thread has ended. */
  #gone = false;

  constructor(shared: SharedStanding, thread: Worker, clock: Clock, log: Log, without: (error: unknown) => void) {
    this.#shared = shared;
    this.#thread = thread;
    this.#clock = clock;
    this.#free = Array.from({ length: shared.places }, (_, place) => shared.places - 1 - place);
    this.#shiftMs = clock.monotonic() - machineClock.monotonic();
    this.#tick();
    thread.on("error", (error) => {
      this.#gone = true;
      without(error);
    });
    thread.on("message", ({ failed }: { failed: string }) =>
      log.debug({ error: failed }, "the thread that stood in for the event loop could not reach the store"),
    );
  }

  #tick(): void {
    this.#stopTicking = this.#clock.after(tickMs, () => {
      // The tick comes first, so that the listeners called below cannot delay it and make the event loop look blocked.
      this.#tick();
      this.look();
    });
  }

  get times(): number {
    return this.#shared.times;
  }

  get returns(): number {
    return this.#shared.returns;
  }

  get acts(): boolean {
    return this.#shared.acts;
  }

  sureUntilMono(): number {
    const { sureUntilMs } = this.#shared;
    return sureUntilMs === 0 ? 0 : sureUntilMs + this.#shiftMs;
  }

  look(): void {
    this.#shared.tick();
    if (!this.#shared.acts) return;
    this.#shared.takeBack();
    const stood = this.#stood();
    this.#returnsSeen = this.returns;
    for (const listener of this.#listeners) listener(stood);
  }

  starts(fence: number): number {
    const mark = this.#free.pop() ?? unmarked;
    if (mark === unmarked) this.#shared.countUnmarked(1);
    else this.#shared.mark(mark, fence);
    this.#shared.tick();
    if (!this.#shared.acts) return mark;
    this.ended(mark);
    return notStarted;
  }

  ended(mark: number): void {
    if (mark === unmarked) this.#shared.countUnmarked(-1);
    else if (mark !== notStarted) {
      this.#shared.unmark(mark);
      this.#free.push(mark);
    }
  }

  onBack(listener: (stood: StoodIn) => void): void {
    this.#listeners.push(listener);
  }

  async quiet(): Promise<StoodIn | null> {
    this.look();
    if (this.times === this.#settledTimes) return null;
    const untilMono = this.#clock.monotonic() + quietMostMs;
    while (this.#shared.busy && !this.#gone && this.#clock.monotonic() <= untilMono)
      await pause(this.#clock, quietLookMs);
    this.#settledTimes = this.times;
    const stood = this.#stood();
    this.#shared.sureUntilMs = 0;
    return stood;
  }

  #stood(): StoodIn {
    return { sureUntilMono: this.sureUntilMono(), resigned: this.#shared.resigned, returnsBefore: this.#returnsSeen };
  }

  tell(standing: Partial<Standing>): void {
    this.#thread.postMessage(standing);
  }

  async close(): Promise<void> {
    this.#gone = true;
    this.#stopTicking();
    await this.#thread.terminate();
  }
}
