import { hostname } from "node:os";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { Redactor } from "../access/secrets/redactor.ts";
import { HandedSecrets } from "../access/secrets/secrets.ts";
import { systemClock } from "../base/clock.ts";
import { closingMs, Ending } from "../base/ending.ts";
import { CarillonError } from "../base/errors.ts";
import { exported, type Log, standardErrorLog } from "../base/log.ts";
import { systemRandom } from "../base/random.ts";
import { stopOnSignals } from "../base/stop-on-signals.ts";
import { isTraced } from "../base/trace-text.ts";
import { version } from "../base/version.ts";
import type { StandIn } from "../cluster/stand-in.ts";
import { type Isolate, Isolates } from "../executors/isolate/isolates.ts";
import type { ProbeServer } from "../http/probes/probe-server.ts";
import { Line } from "../remote/line.ts";
import { RemoteClaims } from "../remote/remote-claims.ts";
import { RemoteFlow } from "../remote/remote-flow.ts";
import { RemoteSession } from "../remote/remote-session.ts";
import type { Handler, RunNotice } from "../run/handler.ts";
import type { BatchHandler, BatchOptions } from "../run/handling/batch.ts";
import {
  type RemoteWorkerOptions,
  type RemoteWorkerSettings,
  workerPreset,
  workerSettingsOf,
} from "../settings/remote-worker.ts";
import { Definitions } from "../store/definitions.ts";
import { StoreClock } from "../store/store-clock.ts";
import { handlerTask } from "../task/schedule-of.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { openTracing } from "../telemetry/tracing.ts";
import { batched } from "../worker/running/batches.ts";
import { Worker } from "../worker/worker.ts";
import { validateKept } from "./payload.ts";
import { Codecs } from "./payloads/codecs.ts";
import { closedFor, openStandIn, remoteStandInOf } from "./stand-in.ts";

export type { Duration } from "../base/duration.ts";
export { CarillonError, type ErrorCode, errorCodes, isCarillonError } from "../base/errors.ts";
export type { Json } from "../base/json.ts";
export type { Log } from "../base/log.ts";
export type { Isolate } from "../executors/isolate/isolates.ts";
export type { Handler, Run, RunLog, RunNotice } from "../run/handler.ts";
export type { BatchHandler, BatchOptions, BatchRun } from "../run/handling/batch.ts";
export type { PayloadCodec } from "../settings/payload-codec.ts";
export type { RemoteWorkerOptions } from "../settings/remote-worker.ts";

/**
 * Creates a worker that communicates with its cluster only by HTTP: it needs the URL of a server and a key, but no store and no
 * coordination service. Other processes define the tasks. The worker receives only runs of tasks for which it has a handler.
 */
export function worker(options: RemoteWorkerOptions = {}): RemoteWorker {
  return new RemoteWorker(options);
}

interface Served {
  handler: Handler;
  schema: StandardSchemaV1 | undefined;
}

type HandlerOrModule = Handler<never> | BatchHandler<never> | URL | string;

interface ServedOptions {
  payload?: StandardSchemaV1;
  isolate?: Isolate;
  batch?: BatchOptions;
}

interface Started {
  line: Line;
  session: RemoteSession;
  standIn: StandIn;
  claims: RemoteClaims;
  worker: Worker;
}

export class RemoteWorker {
  readonly settings: RemoteWorkerSettings;
  readonly #log: Log;
  /** Resolves with a function that ends the export of metrics. */
  #exported: Promise<() => void> | undefined;
  readonly #redactor = new Redactor();
  readonly #served = new Map<string, Served>();
  readonly #isolates: Isolates;
  readonly #codecs: Codecs;
  readonly #listeners: ((notice: RunNotice) => void)[] = [];
  readonly #stopping = new AbortController();
  #started: Started | undefined;
  #starting: Promise<this> | undefined;
  #stopped: Promise<void> | undefined;
  /** The servers' error once they have rejected the key. The worker then stops itself. */
  #keyGone: CarillonError | undefined;
  #probes: ProbeServer | undefined;
  #listening: string | null = null;
  readonly #over = new AbortController();

  /** @throws the errors of `workerSettingsOf` */
  constructor(given: RemoteWorkerOptions) {
    const options = workerPreset.applied({ ...given });
    const key = options.key ?? process.env.CARILLON_WORKER_KEY;
    this.settings = workerSettingsOf(key === undefined ? options : { ...options, key });
    this.#log = this.#redactor.log(exported(options.log ?? standardErrorLog));
    this.#isolates = new Isolates({ ...this.settings, log: this.#log });
    this.#codecs = new Codecs(this.settings, systemClock, this.#log);
  }

  /**
   * Adds a handler for this task. A handler given by its module's path runs in a thread or process of its own. A run whose payload does not
   * match the schema fails without further attempts.
   * @throws TASK_DUPLICATE; TASK_INVALID, also if the worker has already started
   */
  task<Schema extends StandardSchemaV1>(
    name: string,
    options: { payload: Schema; isolate?: Isolate },
    handler: Handler<StandardSchemaV1.InferOutput<Schema>> | URL | string,
  ): this;
  task<Schema extends StandardSchemaV1>(
    name: string,
    options: { payload: Schema; batch: BatchOptions },
    handler: BatchHandler<StandardSchemaV1.InferOutput<Schema>>,
  ): this;
  task<Payload = unknown>(name: string, options: { batch: BatchOptions }, handler: BatchHandler<Payload>): this;
  task<Payload = unknown>(name: string, handler: Handler<Payload> | URL | string): this;
  task(name: string, options: { isolate?: Isolate }, handler: URL | string): this;
  task(name: string, ...given: [HandlerOrModule] | [ServedOptions, HandlerOrModule]): this {
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
    const [{ payload: schema, isolate, batch }, one]: [ServedOptions, HandlerOrModule] =
      given.length === 1 ? [{}, given[0]] : given;
    const { concurrency } = this.settings;
    const handler = batch
      ? batched(name, isolate ? undefined : (one as BatchHandler<never>), batch, { clock: systemClock, concurrency })
      : this.#isolates.handler(name, one as Handler<never>, isolate);
    if (typeof handler !== "function") throw new CarillonError("TASK_INVALID", `task ${name} has no handler`);
    this.#served.set(name, { handler: handler as Handler, schema });
    return this;
  }

  /** The worker's name in the cluster; null before it has joined. */
  get node(): string | null {
    return this.#started?.session.node ?? null;
  }

  /** The address of the endpoint for probes and metrics; null if there is none. */
  get listening(): string | null {
    return this.#listening;
  }

  /** Calls the listener each time a run starts or ends in this worker. */
  onRun(listener: (notice: RunNotice) => void): void {
    this.#listeners.push(listener);
  }

  /**
   * Joins the cluster and begins to execute runs.
   * @throws KEY_…, NODE_NAME_TAKEN, OPTION_INVALID, STOPPED; with `failFast` also SERVER_UNREACHABLE
   */
  start(): Promise<this> {
    if (this.#stopped) return Promise.reject(new CarillonError("STOPPED", "this worker has been stopped"));
    this.#starting ??= this.#start().catch((error) => {
      this.#starting = undefined;
      this.#unlisten();
      this.#isolates.close();
      throw error;
    });
    return this.#starting;
  }

  /**
   * Stops claiming, releases runs that have not started, waits for running handlers and leaves the cluster. Takes at most the option
   * `drain` + 500 ms, even if a part does not respond. Further calls return the same promise.
   */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop().finally(() => this.#over.abort());
    return this.#stopped;
  }

  /** Resolves when this worker has stopped. @throws KEY_UNKNOWN if the worker stopped itself because its key was revoked */
  async ended(): Promise<void> {
    const { signal } = this.#over;
    if (!signal.aborted)
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    if (this.#keyGone) throw this.#keyGone;
  }

  async #start(): Promise<this> {
    const { settings } = this;
    const { servers, key, name, labels, concurrency, claimAheadMs, sessionTimeoutMs, groups, failFast } = settings;
    if (this.#served.size === 0) {
      throw new CarillonError("OPTION_INVALID", "this worker has no task", {
        hint: 'Give it one: .task("name", handler).',
      });
    }
    const metrics = await this.#listen();
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
    const standIn = openStandIn(remoteStandInOf(settings, this.#log));
    const session = new RemoteSession({ ...shared, line, name, join, failFast, held, standIn });
    try {
      await this.#isolates.start();
      await session.begin(this.#stopping.signal);
    } catch (error) {
      line.close();
      return closedFor(standIn, error);
    }
    const flow = new RemoteFlow(session);
    const secrets = new HandedSecrets(flow, this.#redactor);
    const claims = new RemoteClaims({ ...shared, session, flow, claimAheadMs, held });
    const tracing = await openTracing(claims.traces, this.#redactor);
    metrics?.follow(tracing);
    const worker = new Worker({
      ...shared,
      claims: this.#codecs.around(tracing?.around(claims) ?? claims),
      flow: this.#codecs.flow(tracing?.flow(flow) ?? flow),
      secrets,
      writeLogs: (lines) => claims.writeLogs(lines),
      membership: session,
      standIn,
      definitions: new Definitions(claims),
      groupIds: [],
      handlerOf: (task) => {
        const own = this.#handlerOf(handlerTask(task));
        const handler = own && this.#codecs.handler(own);
        return handler && tracing ? tracing.handler(handler) : handler;
      },
      concurrency,
      claimAheadMs,
      listeners: this.#listeners,
      ...(metrics && { onStart: (_task: string, _runId: number, lateMs: number) => metrics.started(lateMs) }),
    });
    session.onRecall(() => worker.onSignal({ kind: "recall" }));
    session.onKeyGone((error) => {
      this.#keyGone = error;
      // Errors are ignored here, because each step of the stop logs its own.
      this.stop().catch(() => undefined);
    });
    this.#started = { line, session, standIn, claims, worker };
    if (settings.handleSignals) stopOnSignals(() => this.stop(), this.#stopping.signal, this.#log);
    return this;
  }

  /**
   * Starts the endpoint for probes, which responds even while no Carillon server is reachable.
   * @returns the metrics; undefined if this worker has no such endpoint
   */
  async #listen(): Promise<Metrics | undefined> {
    const { listen, behindProxy } = this.settings;
    if (listen === null) return undefined;
    const [{ Metrics }, { ProbeServer }] = await Promise.all([
      import("../telemetry/metrics.ts"),
      import("../http/probes/probe-server.ts"),
    ]);
    const metrics = new Metrics(systemClock);
    this.onRun((notice) => metrics.notice(notice));
    const unready = () => {
      if (this.#stopping.signal.aborted) return "stopping";
      return this.#started ? (this.#started.session.trusted() ? null : "server") : "starting";
    };
    const state = () => ({
      trusted: this.#started?.session.trusted() ?? false,
      worker: { held: this.#started?.worker.held ?? 0, concurrency: this.settings.concurrency },
    });
    this.#exported = metrics.export(state);
    const readMetrics = (accept?: string) => metrics.own(state(), accept);
    this.#probes = new ProbeServer({ listen, behindProxy, unready, readMetrics, log: this.#log });
    this.#listening = await this.#probes.start();
    return metrics;
  }

  #unlisten(): void {
    void this.#exported?.then((end) => end());
    this.#probes?.stop();
    this.#listening = null;
  }

  async #stop(): Promise<void> {
    this.#stopping.abort();
    const ending = new Ending({ clock: systemClock, log: this.#log, drainMs: this.settings.drainMs });
    // If `start` is still in progress, waits until it has ended. The caller of `start` gets its error.
    await ending.step("the start under way", () => Promise.allSettled([this.#starting]));
    if (!this.#started) return this.#unlisten();
    const { line, session, standIn, claims, worker } = this.#started;
    const work = () => worker.stop(ending.drainMs, closingMs / 2);
    await Promise.all([
      ending.step("handlers and their verdicts", work, ending.workMs),
      ending.step("claiming no more runs", () => claims.stopClaiming()),
    ]);
    this.#isolates.close();
    session.close();
    await ending.step("the watch for recalls", () => claims.close());
    await ending.step("leaving the cluster", (abandoned) => session.leave("stopped", abandoned));
    await ending.step("the thread that stands in", () => standIn.close());
    line.close();
    this.#unlisten();
    ending.done();
  }

  #handlerOf(task: string): Handler | undefined {
    const served = this.#served.get(task);
    if (!served?.schema) return served?.handler;
    const { handler, schema } = served;
    return async (run, payload) => handler(run, await validateKept(schema, payload, task));
  }
}
