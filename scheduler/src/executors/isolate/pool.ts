import { AsyncLocalStorage } from "node:async_hooks";
import { availableParallelism } from "node:os";
import type { Clock } from "../../base/clock.ts";
import { CarillonError, messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Run } from "../../run/handler.ts";
import type { Ended, FromHost } from "./messages.ts";
import { type Gone, openPlace, type Place, type PlaceOptions } from "./places.ts";
import type { IsolationPlace } from "./settings.ts";
import { received, sent, type Thrown } from "./thrown.ts";
import { cannotBeSent, fieldsOf, WorkerSide } from "./worker-side.ts";

export interface PoolOptions {
  place: IsolationPlace;
  memoryMb: number | null;
  /** The maximum number of hosts. */
  most: number;
  log: Log;
  clock: Clock;
  open?: (options: PlaceOptions) => Place;
}

export interface Work {
  run: Run;
  payload: unknown;
  module: string;
  killAfterMs: number;
  trace: string | undefined;
}

/** A run that is executed by a host, or that waits for a host. */
interface Served extends Work {
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
  turn: number;
  /** Removes the listener from the run's signal, and cancels the timer that would end the host. */
  leave: () => void;
  /** Calls a function in the run's own async context, such as its trace; a host's messages arrive in the context that started the host. */
  inContext: <Result>(call: () => Result) => Result;
}

interface Host {
  place: Place;
  isReady: boolean;
  isGone: boolean;
  /** True after the run's signal has aborted. Such a host is not counted against `most`, because it may have to be ended. */
  isStopping: boolean;
  served: { work: Served; side: WorkerSide } | undefined;
  /** The uncaught error that the host sent before it ended by itself. */
  crash: Thrown | undefined;
  /** The errors of modules that the host could not load, by module. */
  faults: Map<string, unknown>;
  idleSinceMono: number;
}

/** A host is ended after it has been idle for this long, in ms; one idle host is kept. */
const keptIdleMs = 60_000;

/**
 * A pool of hosts with the same settings. Each host executes one run at a time. If the limit allows, the pool keeps one host ready in
 * advance, so that a run need not wait for a start. If a host crashes, only its current run fails; the next run gets another host.
 */
export class Pool {
  readonly #options: PoolOptions;
  readonly #open: (options: PlaceOptions) => Place;
  readonly #modules = new Set<string>();
  readonly #hosts = new Set<Host>();
  /** A stack: the host that became idle last is used first, so that the others can be ended. */
  readonly #idle: Host[] = [];
  readonly #waiting = new Set<Served>();
  #turns = 0;
  #closed = false;
  #cancelTrim: (() => void) | undefined;
  #started: { resolve: (faults: Map<string, unknown>) => void; reject: (error: unknown) => void } | undefined;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#open = options.open ?? openPlace;
  }

  /** The number of hosts, including those that are starting. */
  get size(): number {
    return this.#hosts.size;
  }

  /** Adds a module, which every host that starts from now on loads before its first run. */
  addModule(module: string): void {
    this.#modules.add(module);
  }

  /**
   * Starts hosts, and resolves when the first one is ready; at once if a host is ready already.
   * @returns the errors of modules that cannot be loaded, by module
   * @throws HANDLER_CRASHED, HANDLER_MEMORY; STOPPED if `close` is called meanwhile
   */
  start(): Promise<Map<string, unknown>> {
    this.#closed = false;
    const ready = [...this.#hosts].find(({ isReady }) => isReady);
    if (ready) return Promise.resolve(ready.faults);
    return new Promise((resolve, reject) => {
      this.#started = { resolve, reject };
      this.#grow();
    });
  }

  /**
   * Executes a run in a host.
   * @returns the handler's result
   * @throws the handler's error, the reason of the run's signal if it aborts before a host is free, TIMEOUT, HANDLER_CRASHED,
   * HANDLER_MEMORY, PAYLOAD_INVALID, STOPPED
   */
  run(work: Work): Promise<unknown> {
    const { signal } = work.run;
    if (this.#closed) return Promise.reject(new CarillonError("STOPPED", "the worker is shutting down"));
    if (signal.aborted) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      const served: Served = {
        ...work,
        resolve,
        reject,
        turn: this.#turns++,
        leave: () => undefined,
        inContext: AsyncLocalStorage.snapshot(),
      };
      const given = () => {
        this.#waiting.delete(served);
        reject(signal.reason);
      };
      signal.addEventListener("abort", given, { once: true });
      served.leave = () => signal.removeEventListener("abort", given);
      this.#waiting.add(served);
      this.#assign();
    });
  }

  /** Ends all hosts; current and waiting runs fail with STOPPED. The pool may be started again. */
  close(): void {
    this.#closed = true;
    this.#cancelTrim?.();
    this.#cancelTrim = undefined;
    this.#started?.reject(new CarillonError("STOPPED", "the worker is shutting down"));
    for (const host of this.#hosts) this.#drop(host, () => new CarillonError("STOPPED", "the worker is shutting down"));
    for (const { reject } of this.#waiting) reject(new CarillonError("STOPPED", "the worker is shutting down"));
    this.#waiting.clear();
  }

  #assign(): void {
    for (const work of this.#waiting) {
      const host = this.#idle.pop();
      if (!host) break;
      this.#waiting.delete(work);
      work.leave();
      this.#serve(host, work);
    }
    this.#grow();
  }

  /**
   * Starts hosts for the waiting runs and one spare host. At most one host per CPU starts at a time, because a start takes about 50 ms of
   * CPU time.
   */
  #grow(): void {
    if (this.#closed) return;
    const hosts = [...this.#hosts];
    const starting = hosts.filter(({ isReady }) => !isReady).length;
    const lasting = hosts.filter(({ isStopping }) => !isStopping).length;
    const wanted = this.#waiting.size + 1 - this.#idle.length - starting;
    const allowed = Math.min(this.#options.most - lasting, availableParallelism() - starting);
    for (let started = 0; started < Math.min(wanted, allowed); started++) this.#startOne();
  }

  #startOne(): void {
    const { place, memoryMb } = this.#options;
    const host: Omit<Host, "place"> & Partial<Pick<Host, "place">> = {
      isReady: false,
      isGone: false,
      isStopping: false,
      served: undefined,
      crash: undefined,
      faults: new Map(),
      idleSinceMono: 0,
    };
    const made = host as Host;
    try {
      made.place = this.#open({
        place,
        memoryMb,
        message: (message) => this.#take(made, message),
        gone: (gone) => this.#gone(made, gone),
      });
    } catch (error) {
      const { hint } = error as { hint?: string };
      const options = { hint, cause: error };
      this.#failStart(
        new CarillonError("HANDLER_CRASHED", `no ${place} could be started: ${messageOf(error)}`, options),
      );
      return;
    }
    this.#hosts.add(made);
    made.place.send({ kind: "load", modules: [...this.#modules] });
  }

  #serve(host: Host, work: Served): void {
    const { run, turn, module, payload, trace, killAfterMs } = work;
    const side = new WorkerSide(run, turn, (message) => host.place.send(message));
    host.served = { work, side };
    let cancel = (): void => undefined;
    const abort = () => {
      host.isStopping = true;
      host.place.send({ kind: "abort", turn, reason: sent(run.signal.reason) });
      cancel = this.#options.clock.after(killAfterMs, () => this.#kill(host, work));
      this.#grow();
    };
    run.signal.addEventListener("abort", abort, { once: true });
    work.leave = () => {
      run.signal.removeEventListener("abort", abort);
      cancel();
    };
    try {
      host.place.send({ kind: "run", turn, module, fields: fieldsOf(run), payload, trace });
    } catch (error) {
      this.#finish(host);
      work.reject(cannotBeSent(run.task, error));
    }
  }

  #take(host: Host, message: FromHost): void {
    if (host.isGone) return;
    if (message.kind === "loaded") {
      host.isReady = true;
      for (const { module, thrown } of message.faults) host.faults.set(module, received(thrown));
      this.#started?.resolve(host.faults);
      this.#started = undefined;
      this.#becomesIdle(host);
    } else if (message.kind === "crashed") host.crash = message.thrown;
    else if (host.served?.work.turn !== message.turn) return;
    else if (message.kind !== "ended") {
      const { work, side } = host.served;
      work.inContext(() => side.take(message));
    } else this.#end(host, message);
  }

  #end(host: Host, ended: Ended): void {
    const { work, side } = host.served as NonNullable<Host["served"]>;
    try {
      work.resolve(side.result(ended));
    } catch (error) {
      work.reject(error);
    }
    this.#finish(host);
  }

  /** Called when the host's run has ended: makes the host available for the next run, or ends it if there are too many. */
  #finish(host: Host): void {
    host.served?.work.leave();
    host.served = undefined;
    if (host.isStopping && this.#hosts.size > this.#options.most) {
      this.#drop(host);
      return;
    }
    host.isStopping = false;
    this.#becomesIdle(host);
  }

  #becomesIdle(host: Host): void {
    host.idleSinceMono = this.#options.clock.monotonic();
    this.#idle.push(host);
    if (this.#idle.length > 1) this.#cancelTrim ??= this.#options.clock.after(keptIdleMs, () => this.#trim());
    this.#assign();
  }

  #trim(): void {
    this.#cancelTrim = undefined;
    const oldestMono = this.#options.clock.monotonic() - keptIdleMs;
    const spare = this.#idle.filter(({ idleSinceMono }) => idleSinceMono <= oldestMono).slice(0, this.#idle.length - 1);
    for (const host of spare) this.#drop(host);
    if (this.#idle.length > 1) this.#cancelTrim = this.#options.clock.after(keptIdleMs, () => this.#trim());
  }

  #kill(host: Host, { run, killAfterMs }: Served): void {
    const { place, log } = this.#options;
    log.warn(
      { task: run.task, run: run.id, place },
      "an isolated handler did not stop when it was told to: what it ran in was ended",
    );
    this.#drop(
      host,
      () =>
        new CarillonError(
          "TIMEOUT",
          `the handler did not stop within ${killAfterMs} ms of being told to, and its ${place} was ended`,
        ),
    );
    this.#assign();
  }

  /** Ends the host. It is removed from the pool at once, although it may take a moment to end. @param why creates the error for its run */
  #drop(host: Host, why?: () => CarillonError): void {
    host.isGone = true;
    this.#forget(host);
    host.place.end();
    if (!host.served || !why) return;
    host.served.work.leave();
    host.served.work.reject(why());
  }

  #forget(host: Host): void {
    this.#hosts.delete(host);
    const at = this.#idle.indexOf(host);
    if (at >= 0) this.#idle.splice(at, 1);
  }

  #gone(host: Host, gone: Gone): void {
    if (host.isGone) return;
    host.isGone = true;
    this.#forget(host);
    const { served, isReady } = host;
    const error = this.#crashed(host, gone);
    if (served) {
      served.work.leave();
      if (host.crash)
        served.work.run.log.error("an error that the handler did not catch", { error: received(host.crash) });
      served.work.reject(error);
    } else if (isReady)
      this.#options.log.warn({ error: error.message }, "an isolated handler's host ended between two runs");
    else this.#failStart(error);
    if (isReady) this.#assign();
  }

  /** Called if a host could not be started: fails the first waiting run, and starts another host for the others. */
  #failStart(error: CarillonError): void {
    this.#options.log.warn({ error: error.message }, "a host for isolated handlers could not be started");
    this.#started?.reject(error);
    this.#started = undefined;
    const [first] = this.#waiting;
    if (!first) return;
    this.#waiting.delete(first);
    first.leave();
    first.reject(error);
    if (this.#waiting.size > 0) this.#assign();
  }

  #crashed({ crash }: Host, { outOfMemory, how }: Gone): CarillonError {
    const { place, memoryMb } = this.#options;
    if (outOfMemory)
      return new CarillonError(
        "HANDLER_MEMORY",
        `the handler's ${place} needed more memory than ${memoryMb === null ? "Node allows" : `${memoryMb} MB`}`,
        {
          hint: "Let it hold less at once, or raise isolate.memoryMb of its task.",
        },
      );
    const cause = crash === undefined ? undefined : received(crash);
    return new CarillonError(
      "HANDLER_CRASHED",
      crash === undefined
        ? `the handler's ${place} ${how}`
        : `the handler's ${place} ended by an error that nothing caught: ${messageOf(cause)}`,
      {
        hint:
          place === "thread"
            ? "No other run was touched."
            : "No other run was touched. SIGKILL may be the system's, out of memory.",
        cause,
      },
    );
  }
}
