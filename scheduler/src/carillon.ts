import type { GraceLock } from "@carillon/zookeeper";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { watchAlarms } from "./alarms/channels.ts";
import type { Clock } from "./clock.ts";
import { commandHandler } from "./command/handler.ts";
import { joinPatiently } from "./coordination/agreement.ts";
import { type GraceOptions, Locks } from "./coordination/locks.ts";
import { checkCoordination } from "./coordination/open.ts";
import { CoordinationService } from "./coordination/service.ts";
import type { Membership } from "./coordination.ts";
import { DefinedTasks, type Registry } from "./defined-tasks.ts";
import { Definitions } from "./definitions.ts";
import { type EmbeddedStore, openEmbedded } from "./embedded/index.ts";
import { Engine } from "./engine/engine.ts";
import { Reconciler } from "./engine/reconciler.ts";
import { EnqueueCall } from "./enqueue-call.ts";
import type { EnqueueOptions } from "./enqueue-options.ts";
import { Enqueuer } from "./enqueuer.ts";
import { CarillonError, messageOf } from "./errors.ts";
import { checkGroupLimit } from "./group-store.ts";
import type { Handler, RunNotice } from "./handler.ts";
import { httpCaller } from "./http-task/handler.ts";
import { checkWebhooks, noticePoster } from "./http-task/notice.ts";
import type { HttpOptions } from "./http-task.ts";
import { identityOf } from "./identity.ts";
import type { Election, ElectionOptions, Lock, LockOptions, SemaphoreOptions } from "./locks.ts";
import { type Log, standardErrorLog } from "./log.ts";
import { Measuring } from "./metrics/measuring.ts";
import { madeName } from "./node-name.ts";
import { saidSchema } from "./payload.ts";
import { awaitRecall } from "./recall.ts";
import { OwnSecrets } from "./secrets/own-secrets.ts";
import { type CarillonOptions, carillonPreset, longestBeatMs, type Settings, settingsOf } from "./settings.ts";
import { endWork, leaveCluster, type Started } from "./started.ts";
import { stopOnSignals } from "./stop-on-signals.ts";
import { openPostgres } from "./store/postgres.ts";
import type { Change, Enqueued, EnqueueWrite, LocalClaims, Signal, Store, TaskRecord } from "./store.ts";
import { StoreClock } from "./store-clock.ts";
import { realSurroundings, type Surroundings } from "./surroundings.ts";
import { defineTask, type TaskDefinition, type TaskOptions } from "./task.ts";
import { handleOf, type RunHandle, type Task, type WithSchema } from "./task-handle.ts";
import { openStoreTracing, type Tracing } from "./tracing/tracing.ts";
import { untilAnswered } from "./until-answered.ts";
import type { Witness } from "./witness.ts";
import { Worker, type WorkerOptions } from "./worker/worker.ts";

/** Everything that exists once the store is open. */
interface Opened {
  store: Store;
  embedded: EmbeddedStore | undefined;
  definitions: Definitions;
  enqueuer: Enqueuer;
  tracing: Tracing | undefined;
}

interface Looking extends Pick<Opened, "store" | "embedded"> {
  nowMs: () => number;
  url: string | undefined;
  coordination: string | undefined;
}

/** Whom a change is put down to, and why it was made. */
type Why = Partial<Pick<Change, "author" | "reason">>;

/** Makes a Carillon: scheduler and worker inside this process. Nothing is opened before it is needed. */
export function carillon(options: CarillonOptions = {}): Carillon {
  return new Carillon(options);
}

export class Carillon {
  readonly settings: Settings;
  readonly #options: CarillonOptions;
  readonly #log: Log;
  readonly #secrets: OwnSecrets;
  readonly #surroundings: Surroundings;
  readonly #clock: Clock;
  readonly #storeClock: StoreClock;
  readonly #defined = new DefinedTasks();
  readonly #service: CoordinationService;
  readonly #locks: Locks;
  readonly #enqueues: EnqueueCall;
  readonly #measuring: Measuring;
  readonly #listeners: ((notice: RunNotice) => void)[] = [];
  readonly #stopping = new AbortController();
  readonly #callHttp: ReturnType<typeof httpCaller>;
  #opening: Promise<Opened> | undefined;
  #started: Started | undefined;
  #starting: Promise<this> | undefined;
  #stopped: Promise<void> | undefined;
  #node: string;
  #listening: string | null = null;

  /** @param surroundings for tests that own the time: see carillon/testing */
  constructor(given: CarillonOptions, surroundings: Surroundings = realSurroundings) {
    this.#surroundings = surroundings;
    this.#clock = surroundings.clock;
    this.#storeClock = new StoreClock(this.#clock);
    const options = carillonPreset.applied(given);
    this.settings = { ...settingsOf(options), ...surroundings.settings };
    if (options.coordination !== undefined) checkCoordination(options.coordination);
    checkWebhooks(this.settings.alarms?.channels ?? {});
    this.#options = options;
    this.#secrets = new OwnSecrets(options.secretKeys);
    this.#log = this.#secrets.redactor.log(options.log ?? standardErrorLog);
    this.#node = this.settings.name ?? madeName();
    this.#callHttp = httpCaller({ ...this.settings.httpTasks, clock: this.#clock });
    const { drainMs, sessionTimeoutMs, name: owner, failFast, metrics } = this.settings;
    this.#measuring = new Measuring(metrics ? this.#clock : null, (listener) => this.onRun(listener));
    const shared = { clock: this.#clock, log: this.#log, failFast };
    const [storeClock, { signal }] = [this.#storeClock, this.#stopping];
    this.#service = new CoordinationService({
      ...shared,
      url: options.coordination,
      sessionTimeoutMs,
      storeClock,
      signal,
      openWitness: surroundings.openWitness,
    });
    const open = async () => this.#service.locks((await this.open()).store);
    this.#locks = new Locks({ ...shared, open, drainMs, owner });
    this.#enqueues = new EnqueueCall({
      defined: this.#defined,
      now: () => this.#storeClock.now(),
      open: async () => {
        const { store } = await this.open();
        const { enqueuer, definitions, tracing } = (await this.#opening) as Opened;
        const taskId = (task: string) => this.#defined.taskId(task, this.#registry(store, definitions));
        return { runs: store.runs, enqueuer, tracing, taskId };
      },
    });
  }

  /**
   * Defines a task. The handler runs in whichever process has it; the definition is stored when this process starts.
   * @throws TASK_DUPLICATE, TASK_INVALID and what the schedule's own check throws
   */
  task<Schema extends StandardSchemaV1>(
    name: string,
    options: WithSchema<Schema>,
    handler: Handler<StandardSchemaV1.InferOutput<Schema>>,
  ): Task<StandardSchemaV1.InferInput<Schema>>;
  task<Payload = unknown>(name: string, options: TaskOptions, handler: Handler<Payload>): Task<Payload>;
  task(name: string, options: TaskOptions & { command: NonNullable<TaskOptions["command"]> }): Task<undefined>;
  task<Payload = unknown>(name: string, options: TaskOptions & { http: HttpOptions }): Task<Payload>;
  task(name: string, options: TaskOptions & { payload?: StandardSchemaV1 }, handler?: Handler<never>): Task<unknown> {
    const { payload: schema, ...rest } = options;
    const definition = defineTask(name, { payloadSchema: saidSchema(schema) ?? null, ...rest });
    this.#defined.add({ definition, schema, handler });
    if (this.#opening)
      this.#log.warn({ task: name }, "defined after the store was opened: it is stored with its first use");
    return handleOf(this, name, (count) => this.#defined.next(definition, this.#storeClock.now(), count));
  }

  get node(): string {
    return this.#node;
  }

  /** Where remote workers reach this process, once it has started; null: nowhere. */
  get listening(): string | null {
    return this.#listening;
  }

  /** The term while this process leads, else null. */
  get term(): number | null {
    return this.#started?.membership.term() ?? null;
  }

  /** Tells of runs in this process as they start and end. */
  onRun(listener: (notice: RunNotice) => void): void {
    this.#listeners.push(listener);
  }

  /**
   * Opens the store, joins the cluster, and begins to plan and to run. @throws STORE_…, EMBEDDED_…, COORDINATION_…, NODE_…_TAKEN,
   * SETTINGS_DIFFER, TASK_INVALID, PAYLOAD_INVALID, CALENDAR_UNKNOWN, OPTION_INVALID, LISTEN_FAILED, CANCELLED, STOPPED
   */
  start(): Promise<this> {
    if (this.#stopped) return Promise.reject(stopped());
    this.#starting ??= this.#start().catch(async (error) => {
      // What has begun by then would beat, lead and run, and nobody would know that it is there.
      await this.#end("it could not start");
      await this.#service.abandon();
      this.#starting = undefined;
      throw error;
    });
    return this.#starting;
  }

  /** Drains the worker, hands leadership over, closes the store. Idempotent. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  // ---- work

  /**
   * Asks for a run. Resolves once it is in the store for good.
   * @throws TASK_UNKNOWN, PAYLOAD_INVALID, PAYLOAD_TOO_LARGE, OPTION_INVALID, STORE_…
   */
  enqueue(task: string, payload?: unknown, options: EnqueueOptions = {}): Promise<RunHandle> {
    return this.#enqueues.enqueue(task, payload, options, "enqueue");
  }

  run(task: string, payload?: unknown): Promise<RunHandle> {
    return this.#enqueues.enqueue(task, payload, {}, "manual");
  }

  /**
   * Stops planning the task. Resolves when nothing of it that had not started can start any more; what runs goes on.
   * @returns runs that were claimed and turned out to have started
   */
  async pause(task: string, why: Why = {}): Promise<{ started: number[] }> {
    const { store } = await this.open();
    const { recalled } = await store.tasks.pause(task, this.#change(why));
    return { started: await awaitRecall(store.runs, this.#surroundings.callersClock, recalled) };
  }

  async resume(task: string, why: Why = {}): Promise<void> {
    const { store } = await this.open();
    await store.tasks.resume(task, this.#change(why));
  }

  /**
   * At most so many runs of the group's tasks at once, on all its workers together; null: as many as they take.
   * @throws GROUP_UNKNOWN, OPTION_INVALID
   */
  async limitGroup(group: string, runs: number | null, why: Why = {}): Promise<void> {
    checkGroupLimit(runs);
    const { store } = await this.open();
    await store.groups.limit(group, runs, this.#change(why));
  }

  /** Removes the task: nothing of it is planned or started again; its history stays. */
  async remove(task: string, why: Why = {}): Promise<void> {
    const { store } = await this.open();
    const { recalled } = await store.tasks.remove(task, this.#change(why));
    await awaitRecall(store.runs, this.#surroundings.callersClock, recalled);
  }

  /** @returns "cancelled" when it will not run; "stopping" when it runs and was told to stop */
  async cancel(runId: number, reason = "cancelled", author = this.#node): Promise<"cancelled" | "stopping"> {
    const { store } = await this.open();
    if ((await store.runs.cancel(runId, reason, this.#storeClock.now(), author)) === "cancelled") return "cancelled";
    const [started] = await awaitRecall(store.runs, this.#surroundings.callersClock, [runId]);
    return started === undefined ? "cancelled" : "stopping";
  }

  /**
   * Decides what becomes of an undecided run: its worker was lost, and its task says `onWorkerLost: "ask"`.
   * @throws RUN_UNKNOWN, RUN_STATE
   */
  async decide(runId: number, how: "retry" | "fail", reason = "", author = this.#node): Promise<void> {
    const { store } = await this.open();
    await store.flow.decide(runId, how, reason, this.#storeClock.now(), author);
  }

  /** Stores a definition that no code here stands behind, such as a command task. */
  async save(
    definition: TaskDefinition,
    { expectedVersion = null, ...why }: Why & { expectedVersion?: number | null } = {},
  ): Promise<{ record: TaskRecord; changed: boolean }> {
    const { store } = await this.open();
    return store.tasks.save(definition, expectedVersion, this.#change(why));
  }

  /** The store, opened: for looking at tasks, runs, slots, members and terms. */
  async open(): Promise<Looking> {
    if (this.#stopped && !this.#opening) throw stopped();
    this.#opening ??= this.#open().catch((error) => {
      this.#opening = undefined;
      throw error;
    });
    const { store, embedded } = await this.#opening;
    const { store: url, coordination } = this.#options;
    return { store, embedded, url, coordination, nowMs: () => this.#storeClock.now() };
  }

  /** What this process counts and times, and figures of the cluster, as Prometheus reads them. @throws OPTION_INVALID */
  async metrics(): Promise<{ contentType: string; text: string }> {
    const { store, nowMs } = await this.open();
    return this.#measuring.read({ store, nowMs: nowMs(), term: this.term });
  }

  // ---- locks

  /** Mutual exclusion among all processes of the cluster, which need not have started. @throws OPTION_INVALID, STOPPED */
  lock(name: string, options?: LockOptions): Lock {
    return this.#locks.lock(name, options);
  }

  /** A lock that so many may hold at once. @throws OPTION_INVALID, STOPPED */
  semaphore(name: string, options: SemaphoreOptions): Lock {
    return this.#locks.semaphore(name, options);
  }

  /** Stands for election from now on, until the election or this Carillon is closed. @throws OPTION_INVALID, STOPPED */
  elect(name: string, options: ElectionOptions): Election {
    return this.#locks.elect(name, options);
  }

  /**
   * A lock for long work that one process keeps between uses, and that outlives it by a grace: see docs/grace-lock.md.
   * @throws OPTION_INVALID, STOPPED, COORDINATION_UNSUPPORTED on Redis, STORE_…, COORDINATION_…
   */
  graceLock(name: string, options: GraceOptions = {}): Promise<GraceLock> {
    return this.#locks.graceLock(name, options);
  }

  // ---- composition

  async #open(): Promise<Opened> {
    const [{ directory }, { signal }] = [this.#options, this.#stopping];
    const { schema, migrate, failFast } = this.settings;
    const embedded =
      this.#options.store === undefined
        ? await openEmbedded({ directory, signal, log: (line) => this.#log.info({}, line) })
        : undefined;
    let opened: Store | undefined;
    try {
      opened = await openPostgres({
        url: this.#options.store ?? (embedded as EmbeddedStore).url,
        ...{ schema, migrate, failFast },
        signal,
        log: this.#log,
        ...(embedded ? { revive: () => embedded.revive() } : {}),
        ...this.#surroundings.postgres,
      });
      const store = await this.#measuring.around(await this.#surroundings.around(opened));
      await this.#untilAnswered(() => this.#storeClock.ask(store.clock));
      this.#storeClock.sharpenBy(store.clock);
      const tracing = await openStoreTracing(store.runs, this.#storeClock, this.#secrets.redactor);
      const enqueuer = new Enqueuer((...batch) => this.#send(store, ...batch));
      return { store, embedded, definitions: new Definitions(store.tasks), enqueuer, tracing };
    } catch (error) {
      await Promise.allSettled([opened?.close()]);
      await embedded?.release();
      throw error;
    }
  }

  async #start(): Promise<this> {
    await this.open();
    const { store, definitions, enqueuer, tracing } = (await this.#opening) as Opened;
    const { settings } = this;
    await this.#defined.checkSlotPayloads();
    // Loaded where somebody listens: all others start without it.
    const server = settings.listen === null ? undefined : await import("./http/server.ts");
    const witness = await this.#untilAnswered(() => this.#service.join(store));
    const membership = await this.#join(store, witness);
    const started: Started = { membership, listening: new AbortController() };
    this.#started = started;
    const shared = {
      ...{ store, membership, definitions, clock: this.#clock, storeClock: this.#storeClock },
      ...{ random: this.#surroundings.random, log: this.#log },
      ...this.#secrets.of(store.secrets),
      ...settings,
    };
    const engine = settings.scheduler ? new Engine(shared) : undefined;
    started.engine = engine;
    const worker = settings.worker ? await this.#makeWorker(shared) : undefined;
    started.worker = worker;
    const more = {
      ...{ enqueuer, tracing },
      node: this.#node,
      readMetrics: () => this.metrics(),
      listen: settings.listen ?? "",
      unready: () => (this.#stopping.signal.aborted ? "stopping" : membership.trusted() ? null : "store"),
    };
    const http = server && new server.HttpServer({ ...shared, ...more });
    started.http = http;
    started.alarms = await watchAlarms({ ...shared, node: this.#node }, settings.alarms, noticePoster, this.#listeners);
    const reconciler = new Reconciler({ ...shared, onChanged: () => worker?.onSignal({ kind: "tasks" }) });
    started.reconciler = reconciler;
    const onSignal = (signal: Signal) => {
      engine?.onSignal(signal);
      reconciler.onSignal(signal);
      if (signal.kind !== "tasks") worker?.onSignal(signal);
      http?.onSignal(signal);
    };
    started.heard = store.signals.listen(onSignal, started.listening.signal);
    if (http) this.#listening = await http.start();
    // Last, so that a slot that comes due while the others are still being stored is planned and run.
    await this.#untilAnswered(() => this.#defined.registerAll(this.#registry(store, definitions)));
    engine?.onSignal({ kind: "tasks" });
    if (settings.handleSignals) stopOnSignals(() => this.stop(), this.#stopping.signal, this.#log);
    return this;
  }

  async #makeWorker(shared: Omit<WorkerOptions, "claims" | "writeLogs" | "groupIds" | "handlerOf"> & { store: Store }) {
    const ask = () => Promise.all(this.#groups().map((name) => shared.store.tasks.group(name)));
    const groupIds = await this.#untilAnswered(ask);
    const { tracing } = (await this.#opening) as Opened;
    return new Worker({
      ...shared,
      claims: tracing?.around(shared.store.claims) ?? shared.store.claims,
      flow: tracing?.flow(shared.store.flow) ?? shared.store.flow,
      writeLogs: (lines) => shared.store.runs.writeLogs(lines, shared.storeClock.now()),
      groupIds,
      handlerOf: (task) => {
        const handler = this.#defined.handlerOf(task) ?? this.#undefinedHandler(task);
        return handler && tracing ? tracing.handler(handler) : handler;
      },
      listeners: this.#listeners,
    });
  }

  #groups(): string[] {
    return this.settings.groups ?? this.#defined.groups;
  }

  #join(store: Store, witness: Witness | undefined): Promise<Membership> {
    const { settings } = this;
    const rename = () => {
      if (settings.name === null) this.#node = madeName();
      return settings.name === null;
    };
    const optionsOf = () => ({
      ...{ store, witness, clock: this.#clock, storeClock: this.#storeClock, log: this.#log },
      identity: identityOf(settings, this.#node, this.#groups(), this.#options.coordination),
      beatMs: settings.beatMs,
      shownBeatMs: longestBeatMs,
    });
    const { failFast } = settings;
    return joinPatiently(optionsOf, { clock: this.#clock, failFast, rename, signal: this.#stopping.signal });
  }

  readonly #untilAnswered = <T>(ask: () => Promise<T>) =>
    untilAnswered(ask, { ...this.settings, clock: this.#clock, signal: this.#stopping.signal });

  async #stop(): Promise<void> {
    this.#stopping.abort();
    // A start under way ends first; its own caller is told how.
    await Promise.allSettled([this.#starting, this.#opening]);
    await this.#end("stopped", () => this.#locks.close());
    await this.#service.leave();
    if (!this.#opening) return;
    const { store, embedded } = await this.#opening;
    this.#opening = undefined;
    this.#enqueues.close();
    await store.close();
    await embedded?.release();
  }

  /** @param between what ends before the node leaves, also where there is none */
  async #end(why: string, between?: () => Promise<void>): Promise<void> {
    const started = this.#started;
    if (started) {
      // Nothing is addressed to it any more. With the store away its session's end takes back what was.
      if (started.worker) await this.#drain(started.membership.sessionId);
      await endWork(started, this.settings.drainMs);
    }
    await between?.();
    if (started) await leaveCluster(started, why);
    this.#started = undefined;
    this.#listening = null;
  }

  async #drain(sessionId: number): Promise<void> {
    try {
      await (await this.#opening)?.store.routes.drain(sessionId);
    } catch (error) {
      this.#log.debug({ error: messageOf(error) }, "the store was not told that this worker stops");
    }
  }

  // ---- details

  #change({ author = this.#node, reason = "" }: Why): Change {
    return { author, reason, nowMs: this.#storeClock.now() };
  }

  /** What is due and can start here is claimed as it is written; others hear of the rest by signal. */
  #send(store: Store, writes: EnqueueWrite[], drawn: number[]): Promise<Enqueued[]> {
    const send = (local?: LocalClaims) => store.runs.enqueue(writes, this.#storeClock.now(), local, drawn);
    return this.#started?.worker?.enqueuing(send) ?? send();
  }

  #registry(store: Store, definitions: Definitions): Registry {
    const nowMs = this.#storeClock.now();
    return { tasks: store.tasks, definitions, author: this.#node, nowMs, log: this.#log };
  }

  /** Of a task that no code of this process stands behind: it says itself what to do. */
  #undefinedHandler({ command, http }: TaskDefinition): Handler | undefined {
    if (command !== null) return commandHandler(command, this.settings.commands, this.#clock);
    return http === undefined ? undefined : this.#callHttp(http);
  }
}

const stopped = () => new CarillonError("STOPPED", "this Carillon has been stopped", { hint: "Make a new one." });
