import { hostname } from "node:os";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { systemClock } from "./clock.ts";
import { Definitions } from "./definitions.ts";
import { CarillonError } from "./errors.ts";
import type { Handler, RunNotice } from "./handler.ts";
import { type Log, standardErrorLog } from "./log.ts";
import { validateKept } from "./payload.ts";
import { systemRandom } from "./random.ts";
import { Redactor } from "./redactor.ts";
import { Line } from "./remote/line.ts";
import { RemoteClaims } from "./remote/remote-claims.ts";
import { RemoteFlow } from "./remote/remote-flow.ts";
import { RemoteSession } from "./remote/remote-session.ts";
import {
  type RemoteWorkerOptions,
  type RemoteWorkerSettings,
  workerPreset,
  workerSettingsOf,
} from "./remote-worker-options.ts";
import { HandedSecrets } from "./secrets.ts";
import { stopOnSignals } from "./stop-on-signals.ts";
import { StoreClock } from "./store-clock.ts";
import { isTraced, openTracing } from "./tracing/tracing.ts";
import { version } from "./version.ts";
import { Worker } from "./worker/worker.ts";

export type { Duration } from "./duration.ts";
export { CarillonError, type ErrorCode, errorCodes, isCarillonError } from "./errors.ts";
export type { Handler, Run, RunLog, RunNotice } from "./handler.ts";
export type { Json } from "./json.ts";
export type { Log } from "./log.ts";
export type { RemoteWorkerOptions } from "./remote-worker-options.ts";

/**
 * A worker that reaches its cluster by HTTP only: it needs a server's URL and a key, no store and no coordination.
 * The tasks that it has handlers for are defined elsewhere; it is given runs of no others.
 */
export function worker(options: RemoteWorkerOptions = {}): RemoteWorker {
  return new RemoteWorker(options);
}

interface Served {
  handler: Handler;
  schema: StandardSchemaV1 | undefined;
}

interface Started {
  line: Line;
  session: RemoteSession;
  claims: RemoteClaims;
  worker: Worker;
}

export class RemoteWorker {
  readonly settings: RemoteWorkerSettings;
  readonly #log: Log;
  readonly #redactor = new Redactor();
  readonly #served = new Map<string, Served>();
  readonly #listeners: ((notice: RunNotice) => void)[] = [];
  readonly #stopping = new AbortController();
  #started: Started | undefined;
  #starting: Promise<this> | undefined;
  #stopped: Promise<void> | undefined;

  /** @throws OPTION_INVALID, DURATION_INVALID, KEY_UNKNOWN */
  constructor(given: RemoteWorkerOptions) {
    const options = workerPreset.applied({ ...given });
    const key = options.key ?? process.env.CARILLON_WORKER_KEY;
    this.settings = workerSettingsOf(key === undefined ? options : { ...options, key });
    this.#log = this.#redactor.log(options.log ?? standardErrorLog);
  }

  /**
   * Runs of this task can be run here. A payload that does not match the schema fails its run for good.
   * @throws TASK_DUPLICATE, TASK_INVALID once it has started
   */
  task<Schema extends StandardSchemaV1>(
    name: string,
    options: { payload: Schema },
    handler: Handler<StandardSchemaV1.InferOutput<Schema>>,
  ): this;
  task<Payload = unknown>(name: string, handler: Handler<Payload>): this;
  task(name: string, ...given: [Handler<never>] | [{ payload: StandardSchemaV1 }, Handler<never>]): this {
    if (this.#served.has(name)) {
      throw new CarillonError("TASK_DUPLICATE", `task ${name} has two handlers in this worker`, {
        hint: "Give each task one handler.",
      });
    }
    if (this.#starting) {
      throw new CarillonError("TASK_INVALID", `task ${name} comes after the worker's start`, {
        hint: "A worker says with its start which tasks it can run.",
      });
    }
    const [handler, schema] = given.length === 1 ? [given[0], undefined] : [given[1], given[0].payload];
    if (typeof handler !== "function") throw new CarillonError("TASK_INVALID", `task ${name} has no handler`);
    this.#served.set(name, { handler: handler as Handler, schema });
    return this;
  }

  /** Its name in the cluster, once it has joined. */
  get node(): string | null {
    return this.#started?.session.node ?? null;
  }

  /** Tells of runs as they start and end here. */
  onRun(listener: (notice: RunNotice) => void): void {
    this.#listeners.push(listener);
  }

  /** Joins and begins to run. @throws KEY_…, NODE_NAME_TAKEN, OPTION_INVALID, STOPPED, SERVER_UNREACHABLE with failFast */
  start(): Promise<this> {
    if (this.#stopped) return Promise.reject(new CarillonError("STOPPED", "this worker has been stopped"));
    this.#starting ??= this.#start().catch((error) => {
      this.#starting = undefined;
      throw error;
    });
    return this.#starting;
  }

  /** Claims nothing more, gives back what has not started, waits for what runs, leaves. Idempotent. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #start(): Promise<this> {
    const { settings } = this;
    const { servers, key, name, labels, concurrency, claimAheadMs, sessionTimeoutMs, groups, failFast } = settings;
    if (this.#served.size === 0) {
      throw new CarillonError("OPTION_INVALID", "this worker has no task", {
        hint: 'Give it one: .task("name", handler).',
      });
    }
    const storeClock = new StoreClock(systemClock);
    const shared = {
      clock: systemClock,
      storeClock,
      random: systemRandom,
      log: this.#log,
      timeoutMs: sessionTimeoutMs,
    };
    const held = () => this.#started?.worker.held ?? 0;
    const line = new Line({ ...shared, servers, key, answerMs: sessionTimeoutMs / 3, traces: isTraced() });
    const join = {
      tasks: [...this.#served.keys()],
      concurrency,
      host: hostname(),
      pid: process.pid,
      version,
      labels,
      ...(groups ? { groups } : {}),
    };
    const session = new RemoteSession({ ...shared, line, name, join, failFast, held });
    try {
      await session.begin(this.#stopping.signal);
    } catch (error) {
      line.close();
      throw error;
    }
    const flow = new RemoteFlow(session);
    const secrets = new HandedSecrets(flow, this.#redactor);
    const claims = new RemoteClaims({ ...shared, session, flow, claimAheadMs, held });
    const tracing = await openTracing(claims.traces, this.#redactor);
    const worker = new Worker({
      ...shared,
      claims: tracing?.around(claims) ?? claims,
      flow: tracing?.flow(flow) ?? flow,
      secrets,
      writeLogs: (lines) => claims.writeLogs(lines),
      membership: session,
      definitions: new Definitions(claims),
      groupIds: [],
      handlerOf: ({ name: task }) => {
        const handler = this.#handlerOf(task);
        return handler && tracing ? tracing.handler(handler) : handler;
      },
      concurrency,
      claimAheadMs,
      listeners: this.#listeners,
    });
    session.onRecall(() => worker.onSignal({ kind: "recall" }));
    this.#started = { line, session, claims, worker };
    if (settings.handleSignals) stopOnSignals(() => this.stop(), this.#stopping.signal, this.#log);
    return this;
  }

  async #stop(): Promise<void> {
    this.#stopping.abort();
    // A start under way ends first; its own caller is told how.
    await Promise.allSettled([this.#starting]);
    if (!this.#started) return;
    const { line, session, claims, worker } = this.#started;
    const { drainMs, sessionTimeoutMs } = this.settings;
    const drained = worker.stop(drainMs);
    // Where no server lets it in any more, the last verdicts go nowhere: its claims are taken back, as a dead worker's are.
    const cancel = systemClock.after(drainMs + sessionTimeoutMs, () => session.close());
    await claims.stopClaiming();
    await drained;
    cancel();
    await claims.close();
    session.close();
    await session.leave();
    line.close();
  }

  #handlerOf(task: string): Handler | undefined {
    const served = this.#served.get(task);
    if (!served?.schema) return served?.handler;
    const { handler, schema } = served;
    return async (run, payload) => handler(run, await validateKept(schema, payload, task));
  }
}
