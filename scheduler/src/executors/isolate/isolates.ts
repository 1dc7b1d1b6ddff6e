import { systemClock } from "../../base/clock.ts";
import { CarillonError } from "../../base/errors.ts";
import { shownValue } from "../../base/json.ts";
import type { Log } from "../../base/log.ts";
import type { Handler } from "../../run/handler.ts";
import { Pool } from "./pool.ts";
import { activeTrace } from "./run-trace.ts";
import { isolationOf, moduleOf } from "./settings.ts";

export type { Isolate } from "./settings.ts";

export interface IsolatesOptions {
  /** How many runs this process executes at once. */
  concurrency: number;
  log: Log;
}

/** The isolated handlers of a process and their pools. Tasks with the same place, memory limit and pool size share a pool. */
export class Isolates {
  readonly #options: IsolatesOptions;
  readonly #pools = new Map<string, Pool>();
  /** The first task that uses each module, for errors. */
  readonly #taskOf = new Map<string, string>();
  #starting: Promise<void> | undefined;

  constructor(options: IsolatesOptions) {
    this.#options = options;
  }

  /**
   * Returns a function or undefined as it is; for a module, returns a handler that runs it in a pool.
   * @throws TASK_INVALID, DURATION_INVALID
   */
  handler(
    task: string,
    given: Handler<never> | URL | string | undefined,
    isolate: unknown,
  ): Handler<never> | undefined {
    if (typeof given !== "string" && !(given instanceof URL)) {
      if (given !== undefined && typeof given !== "function") throw noHandler(task, given);
      if (isolate === undefined) return given;
      throw new CarillonError(
        "TASK_INVALID",
        `task ${task}: a handler that is isolated stands in a module of its own`,
        {
          hint: 'Give new URL("./handler.js", import.meta.url) in the place of the function.',
          path: "isolate",
        },
      );
    }
    const { place, memoryMb, most, killAfterMs } = isolationOf(task, isolate);
    const module = moduleOf(task, given);
    const { concurrency, log } = this.#options;
    const kind = JSON.stringify([place, memoryMb, most]);
    const pool =
      this.#pools.get(kind) ?? new Pool({ place, memoryMb, most: most ?? concurrency, log, clock: systemClock });
    this.#pools.set(kind, pool);
    pool.addModule(module);
    if (!this.#taskOf.has(module)) this.#taskOf.set(module, task);
    return async (run, payload) => pool.run({ run, payload, module, killAfterMs, trace: await activeTrace() });
  }

  /** Starts the pools without waiting, while the rest of the process starts. */
  begin(): void {
    this.start().catch(() => undefined); // the caller of `start` gets the error
  }

  /**
   * Resolves when each pool has a host ready, so that the first run need not wait for a host.
   * @throws TASK_INVALID for a module that cannot be loaded or has no handler; HANDLER_CRASHED, HANDLER_MEMORY; STOPPED if
   * `close` is called meanwhile
   */
  start(): Promise<void> {
    this.#starting ??= this.#start();
    return this.#starting;
  }

  async #start(): Promise<void> {
    const found = await Promise.all([...this.#pools.values()].map((pool) => pool.start()));
    for (const [module, error] of found.flatMap((faults) => [...faults])) {
      const { message, hint } = error as CarillonError;
      throw new CarillonError("TASK_INVALID", `task ${this.#taskOf.get(module)}: ${message}`, {
        hint,
        path: "handler",
        cause: error,
      });
    }
  }

  /** Ends all hosts of all pools. */
  close(): void {
    this.#starting = undefined;
    for (const pool of this.#pools.values()) pool.close();
  }
}

const noHandler = (task: string, given: unknown) =>
  new CarillonError("TASK_INVALID", `task ${task}: its handler cannot be ${shownValue(given)}`, {
    hint: "Give a function, or its module's path, as the third argument: task(name, options, handler).",
    path: "handler",
  });
