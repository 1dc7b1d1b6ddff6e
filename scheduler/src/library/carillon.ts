import type { GraceLock } from "@carillon/zookeeper";
import { OwnSecrets } from "../access/secrets/own-secrets.ts";
import type { Change, Why } from "../base/change.ts";
import type { Clock } from "../base/clock.ts";
import { Ending } from "../base/ending.ts";
import { exported, type Log, standardErrorLog } from "../base/log.ts";
import { madeName } from "../base/node-name.ts";
import { stopOnSignals } from "../base/stop-on-signals.ts";
import { untilAnswered } from "../base/until-answered.ts";
import type { Election, ElectionOptions, Lock, LockOptions, SemaphoreOptions } from "../cluster/locks.ts";
import type { Membership } from "../cluster/membership.ts";
import type { MembershipProvider } from "../cluster/membership-provider.ts";
import type { StandIn } from "../cluster/stand-in.ts";
import { joinPatiently } from "../coordination/agreement.ts";
import { type GraceOptions, Locks } from "../coordination/locks.ts";
import { checkCoordination } from "../coordination/open.ts";
import { CoordinationService } from "../coordination/service.ts";
import { watchAlarms } from "../engine/alarms/channels.ts";
import { Engine } from "../engine/engine.ts";
import { Reconciler } from "../engine/reconciler.ts";
import { checkEventAddresses } from "../executors/http/event-poster.ts";
import { checkWebhooks } from "../executors/http/notice.ts";
import type { LocalClaims } from "../run/claim-store.ts";
import type { EnqueueOptions } from "../run/enqueue-options.ts";
import type { Handler, RunNotice } from "../run/handler.ts";
import type { Enqueued, EnqueueWrite } from "../run/run-record.ts";
import { identityOf } from "../settings/identity.ts";
import { warnOfPlainServices } from "../settings/require-tls.ts";
import { type CarillonOptions, carillonPreset, type Settings, settingsOf } from "../settings/settings.ts";
import { realSurroundings, type Surroundings } from "../settings/surroundings.ts";
import type { Definitions } from "../store/definitions.ts";
import type { Store } from "../store/store.ts";
import { StoreClock } from "../store/store-clock.ts";
import type { TaskDefinition } from "../task/task.ts";
import { Measuring } from "../telemetry/measuring.ts";
import type { Worker } from "../worker/worker.ts";
import { tellAlarmPlaces } from "./acts/alarm-places.ts";
import type { Health } from "./acts/health.ts";
import { Nodes } from "./acts/nodes.ts";
import { type OneLiners, oneLiners } from "./acts/one-liners.ts";
import { Operations } from "./acts/operations.ts";
import type { PauseOptions, PauseResult } from "./acts/pause.ts";
import { type Saved, type SaveOptions, TaskActs } from "./acts/task-acts.ts";
import type { EnqueueOne, ResultOfTask, TaskName } from "./acts/task-registry.ts";
import { alarmSenders } from "./alarms/senders.ts";
import { DefinedTasks, type Registry } from "./defined-tasks.ts";
import { EnqueueCall } from "./enqueue-call.ts";
import { Events } from "./events/events.ts";
import { sendEvents } from "./events/outgoing.ts";
import { exchange } from "./exchange.ts";
import type { Exchanged } from "./exchanged.ts";
import { Handlers } from "./handlers.ts";
import { type Looking, type Opened, openStore, stopped } from "./opened.ts";
import type { ResultOf, RunHandle } from "./run-handle.ts";
import { Runs } from "./runs.ts";
import { Schedules } from "./schedules.ts";
import { closedFor, openStandIn } from "./stand-in.ts";
import {
  closeStore,
  countingStarts,
  endNode,
  following,
  healthOf,
  hearing,
  memberOptions,
  type Started,
  standInOf,
  stateOf,
  unreadyOf,
  workerOf,
} from "./started.ts";
import { type CodeOptions, type DefineTask, type EnqueueMany, handleOf, type Producer } from "./task-handle.ts";
import type { TaskType } from "./task-type.ts";

/** Creates a scheduler and worker inside this process. The store is opened only when the first call needs it. */
export function carillon(options: CarillonOptions = {}): Carillon {
  return new Carillon(options);
}

export class Carillon {
  readonly settings: Settings;
  readonly runs: Runs;
  readonly schedules: Schedules;
  readonly operations: Operations;
  readonly nodes: Nodes;
  readonly events: Events;
  readonly on: Events["on"];
  readonly #given: CarillonOptions;
  readonly #options: CarillonOptions;
  readonly #log: Log;
  readonly #secrets: OwnSecrets;
  readonly #surroundings: Surroundings;
  readonly #clock: Clock;
  readonly #storeClock: StoreClock;
  readonly #defined: DefinedTasks;
  readonly #service: CoordinationService;
  readonly #locks: Locks;
  readonly #enqueues: EnqueueCall;
  readonly #acts: TaskActs;
  readonly #measuring: Measuring;
  readonly #listeners: ((notice: RunNotice) => void)[] = [];
  readonly #stopping = new AbortController();
  /** Aborted once the store is closed: calls that still wait for the store reject, and no query is sent to it any more. */
  readonly #abandon = new AbortController();
  readonly #handlers: Handlers;
  #opening: Promise<Opened> | undefined;
  #started: Started | undefined;
  #starting: Promise<this> | undefined;
  #stopped: Promise<void> | undefined;
  #node: string;
  #listening: string | null = null;
  #heedsSignals = false;

  /** @param surroundings clock, randomness and store access; tests that control the time replace them (see carillon/testing) */
  constructor(given: CarillonOptions, surroundings: Surroundings = realSurroundings) {
    this.#given = given;
    this.#surroundings = surroundings;
    this.#clock = surroundings.clock;
    this.#storeClock = new StoreClock(this.#clock);
    const options = carillonPreset.applied(given);
    this.settings = { ...settingsOf(options), ...surroundings.settings };
    if (options.coordination !== undefined) checkCoordination(options.coordination);
    checkWebhooks(this.settings.alarms?.channels ?? {}, this.settings.alarms?.ping);
    checkEventAddresses(this.settings.webhooks);
    this.#options = options;
    this.#defined = new DefinedTasks(this.settings.hotReload);
    this.#secrets = new OwnSecrets(options.secretKeys);
    this.#log = this.#secrets.redactor.log(exported(options.log ?? standardErrorLog));
    this.#node = this.settings.name ?? madeName();
    this.#handlers = new Handlers(this.settings, surroundings, this.#log, this.#defined);
    const { drainMs, sessionTimeoutMs, name: owner, failFast, metrics } = this.settings;
    this.#measuring = new Measuring(metrics ? this.#clock : null, (listener) => this.onRun(listener));
    const shared = { clock: this.#clock, log: this.#log, failFast };
    const [storeClock, { signal }] = [this.#storeClock, this.#stopping];
    const [{ coordination: url }, { openProvider, callersClock: clock }] = [options, surroundings];
    this.#service = new CoordinationService({ ...shared, url, sessionTimeoutMs, storeClock, signal, openProvider });
    const open = async () => this.#service.locks((await this.open()).store);
    this.#locks = new Locks({ ...shared, open, rest: () => this.#service.rest(), drainMs, owner });
    const place = async () => {
      const { store } = await this.open();
      const { enqueuer, definitions, tracing } = (await this.#opening) as Opened;
      const taskId = (task: string) => this.#defined.taskId(task, this.#registry(store, definitions));
      return { store, runs: store.runs, enqueuer, tracing, taskId };
    };
    const shown = { now: () => storeClock.now(), clock, change: (why: Why) => this.#change(why) };
    const acting = { ...shown, open: () => this.open() };
    this.runs = new Runs({ ...acting, codecs: this.#handlers.codecs });
    this.operations = new Operations(acting);
    this.nodes = new Nodes({ ...acting, own: () => this.#node });
    this.#acts = new TaskActs(acting);
    this.events = new Events({ ...shared, ...acting, codecs: this.#handlers.codecs, lock: (name) => this.lock(name) });
    this.on = this.events.on;
    const asking = { ...shown, defined: this.#defined, open: place, codecs: this.#handlers.codecs };
    this.#enqueues = new EnqueueCall({ ...asking, handleOf: this.runs.handleOf });
    this.schedules = new Schedules(asking);
    ({ every: this.every, cron: this.cron } = oneLiners(this.task));
  }

  readonly every: OneLiners["every"];
  readonly cron: OneLiners["cron"];
  /** Defines a task; `DefineTask` documents the arguments. */
  readonly task = ((given: string | TaskType, options: CodeOptions, handler?: Handler<never> | URL | string) => {
    const defined = this.#handlers.defined(given, options, handler);
    const { name } = defined.definition;
    if (this.#defined.add(defined))
      this.#defined.storeSwapped(name, this.#started && (() => this.#register()), this.#log);
    else if (this.#opening)
      this.#log.warn({ task: name }, "defined after the store was opened: it is stored with its first use");
    return handleOf(this, name, (count) => this.#defined.next(defined.definition, this.#storeClock.now(), count));
  }) as DefineTask;

  /** Returns a handle to enqueue runs of a task that other processes define and execute. @throws TASK_DUPLICATE */
  producer<Payload, Result, Input>(type: TaskType<Payload, Result, Input>): Producer<Input, ResultOf<Result>> {
    this.#defined.produce(type as TaskType);
    return handleOf(this, type.name, () => []) as Producer<unknown> as Producer<Input, ResultOf<Result>>;
  }

  get taskCount(): number {
    return this.#defined.size;
  }

  get node(): string {
    return this.#node;
  }

  /** The address at which remote workers reach this process once it has started; null if it does not listen. */
  get listening(): string | null {
    return this.#listening;
  }

  /** The term number while this process is the leader; null otherwise. */
  get term(): number | null {
    return this.#started?.membership.term() ?? null;
  }

  /** Returns the state of this process in the cluster, for a probe, without a query to the store. */
  health(): Health {
    return healthOf(this.#started, this.#node, this.#stopping.signal);
  }

  /** Calls the listener when a run starts or ends in this process. */
  onRun(listener: (notice: RunNotice) => void): void {
    this.#listeners.push(listener);
  }

  /**
   * Opens the store, joins the cluster, begins to plan slots and to execute runs. @throws STORE_…, EMBEDDED_…, COORDINATION_…,
   * NODE_…_TAKEN, SETTINGS_DIFFER, CLOCK_BACK, TASK_INVALID, PAYLOAD_INVALID, CALENDAR_UNKNOWN, OPTION_INVALID, LISTEN_FAILED,
   * CANCELLED, STOPPED
   */
  start(): Promise<this> {
    if (this.#stopped) return Promise.reject(stopped());
    this.#starting ??= this.#start().catch(async (error) => {
      // Stops the parts that have started, which would otherwise continue to send heartbeats, lead and execute runs.
      const ending = this.#ending();
      await this.#end("it could not start", ending);
      await ending.step("leaving the coordination service", () => this.#service.abandon());
      this.#starting = undefined;
      throw error;
    });
    return this.#starting;
  }

  /** Hands over leadership, drains the worker and closes the store, in at most `drain` + 500 ms even if a part hangs. Idempotent. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  /**
   * Enqueues a run. Resolves once the run is durable in the store; with `durability: "relaxed"`, before it is on disk.
   * @throws TASK_UNKNOWN, PAYLOAD_…, CODEC_FAILED, OPTION_INVALID, DURATION_INVALID, ENQUEUE_TIMEOUT, STORE_…, STOPPED
   */
  enqueue<Name extends TaskName>(task: Name, ...given: EnqueueOne<Name>): Promise<RunHandle<ResultOfTask<Name>>> {
    const [payload, options = {}]: [payload?: unknown, options?: EnqueueOptions] = given as never;
    return this.#enqueues.enqueue(task, payload, options, "enqueue") as Promise<RunHandle<ResultOfTask<Name>>>;
  }

  /** Enqueues a run for each payload; see `Task.enqueueMany`. */
  enqueueMany(task: string, ...[payloads, options = {}]: EnqueueMany<never>): Promise<RunHandle[]> {
    return this.#enqueues.many(task, payloads, options);
  }

  run(task: string, payload?: unknown, options: EnqueueOptions = {}): Promise<RunHandle> {
    return this.#enqueues.enqueue(task, payload, options, "manual");
  }

  /**
   * Stops planning the task until it is resumed or `until` has passed. Resolves when none of its waiting runs can start any more. If the
   * task is paused already, this replaces the end, author and reason of the pause. @throws TASK_UNKNOWN, OPTION_INVALID
   */
  pause(task: string, options: PauseOptions = {}): Promise<PauseResult> {
    return this.#acts.pause(task, options);
  }

  resume(task: string, why: Why = {}): Promise<void> {
    return this.#acts.resume(task, why);
  }

  /** Limits the group's concurrent runs, over all its workers together; null: no limit. @throws GROUP_UNKNOWN, OPTION_INVALID */
  limitGroup(group: string, runs: number | null, why: Why = {}): Promise<void> {
    return this.#acts.limitGroup(group, runs, why);
  }

  /** Removes the task: no more slots are planned and no more runs are started. The task's history is kept. */
  remove(task: string, why: Why = {}): Promise<void> {
    return this.#acts.remove(task, why);
  }

  /** Cancels a run; see `runs.cancel`. */
  cancel(runId: number, reason = "cancelled", author = this.#node): Promise<"cancelled" | "stopping"> {
    return this.runs.cancel(runId, { reason, author });
  }

  /** Decides about a run that waits for an operator's decision; see `runs.decide`. */
  decide(runId: number, how: "retry" | "fail", reason = "", author = this.#node): Promise<void> {
    return this.runs.decide(runId, how, { reason, author });
  }

  /** Stores a definition for which this process has no handler, such as a command task. */
  save(definition: TaskDefinition, options: SaveOptions = {}): Promise<Saved> {
    return this.#acts.save(definition, options);
  }

  /** Opens the store and returns it, for reading tasks, runs, slots, members and terms. */
  async open(): Promise<Looking> {
    if (this.#stopped && !this.#opening) throw stopped();
    this.#opening ??= this.#open().catch((error) => {
      this.#opening = undefined;
      throw error;
    });
    const { store, embedded } = await this.#opening;
    const { store: place, coordination } = this.#options;
    const url = embedded ? undefined : place;
    return { store, embedded, url, coordination, nowMs: () => this.#storeClock.now() };
  }

  /** Returns this process's measurements and the cluster's figures in the format that `accept` requests. @throws OPTION_INVALID */
  async metrics(accept?: string): Promise<{ contentType: string; text: string }> {
    const { store, nowMs } = await this.open();
    return this.#measuring.read({ store, nowMs: nowMs(), ...stateOf(this.#started, this.settings) }, accept);
  }

  /**
   * Applies changed options as far as that is possible without a restart. @param decide computes the new options from those given to the
   * constructor @throws the errors of `exchange` in exchange.ts
   */
  exchange(decide: (given: CarillonOptions) => CarillonOptions): Promise<Exchanged> {
    const running = { settings: this.settings, options: this.#options, secrets: this.#secrets, clock: this.#clock };
    const parts = { handlers: this.#handlers, alarms: this.#started?.alarms };
    return exchange({ ...running, ...parts }, decide(this.#given));
  }

  /** Returns a lock among all processes of the cluster; `start` is not needed to use it. @throws OPTION_INVALID, STOPPED */
  lock(name: string, options?: LockOptions): Lock {
    return this.#locks.lock(name, options);
  }

  /** Returns a lock that several holders can have at once. @throws OPTION_INVALID, STOPPED */
  semaphore(name: string, options: SemaphoreOptions): Lock {
    return this.#locks.semaphore(name, options);
  }

  /** Makes this process a candidate until the election or this Carillon is closed. @throws OPTION_INVALID, STOPPED */
  elect(name: string, options: ElectionOptions): Election {
    return this.#locks.elect(name, options);
  }

  /**
   * Returns a lock that its process keeps between uses; if the process vanishes, others wait a while: see docs/coordination/grace-lock.md.
   * @throws OPTION_INVALID, STOPPED, COORDINATION_UNSUPPORTED on Redis, STORE_…, COORDINATION_…
   */
  graceLock(name: string, options: GraceOptions = {}): Promise<GraceLock> {
    return this.#locks.graceLock(name, options);
  }

  // ---- private methods

  #open(): Promise<Opened> {
    // Handles SIGTERM and SIGINT from now on: a process that never calls `start()` must release its locks too.
    this.#heedSignals();
    return openStore({
      settings: this.settings,
      options: this.#options,
      log: this.#log,
      redactor: this.#secrets.redactor,
      storeClock: this.#storeClock,
      surroundings: this.#surroundings,
      measuring: this.#measuring,
      signal: this.#stopping.signal,
      abandon: this.#abandon.signal,
      untilAnswered: this.#untilAnswered,
      handleOf: this.runs.handleOf,
      onBack: () => this.#defined.storeAnew(this.#started && (() => this.#register()), this.#log),
      send: (...given) => this.#send(...given),
    });
  }

  #heedSignals(): void {
    if (!this.settings.handleSignals || this.#heedsSignals) return;
    this.#heedsSignals = true;
    stopOnSignals(() => this.stop(), this.#stopping.signal, this.#log);
  }

  async #start(): Promise<this> {
    warnOfPlainServices(this.#options, this.settings.alarms, this.#log);
    if (this.settings.worker) this.#handlers.isolates.begin();
    await this.open();
    const { store, url, definitions, enqueuer, tracing } = (await this.#opening) as Opened;
    const { settings } = this;
    await this.#defined.checkSlotPayloads();
    // Imported only if this process listens, because loading the HTTP server slows down the start.
    const server = settings.listen === null ? undefined : await import("../http/server.ts");
    const provider = await this.#untilAnswered(() => this.#service.join(store));
    const standIn = openStandIn(standInOf(settings, url, this.#clock, this.#log));
    const membership = await this.#join(store, provider, standIn).catch((error) => closedFor(standIn, error));
    const started: Started = { membership, standIn, listening: new AbortController() };
    this.#started = started;
    const basics = { store, membership, clock: this.#clock, storeClock: this.#storeClock, log: this.#log };
    const shared = {
      ...basics,
      standIn,
      definitions,
      random: this.#surroundings.random,
      onStart: countingStarts(started, { ...basics, ...settings }, this.#measuring),
      ...this.#secrets.of(store.secrets),
      ...settings,
    };
    started.engine = settings.scheduler ? new Engine(shared) : undefined;
    const worker = settings.worker ? await this.#makeWorker(shared) : undefined;
    started.worker = worker;
    const more = {
      enqueuer,
      tracing,
      node: this.#node,
      readMetrics: (accept?: string) => this.metrics(accept),
      untilAnswered: this.#untilAnswered,
      listen: settings.listen ?? "",
      unready: () => unreadyOf(membership, this.#stopping.signal),
    };
    const http = server && new server.HttpServer({ ...shared, ...more });
    started.http = http;
    const watching = { ...shared, node: this.#node, unreadable: () => started.engine?.unreadableFound() ?? null };
    started.alarms = await watchAlarms(watching, settings.alarms, alarmSenders);
    started.reconciler = new Reconciler({ ...shared, onChanged: following(started) });
    started.heard = store.signals.listen(hearing(started), started.listening.signal);
    if (http) this.#listening = await http.start();
    await sendEvents(settings.webhooks, { events: this.events, clock: this.#clock, store });
    // Tasks are stored after the engine and worker have started, so that a slot that is due meanwhile is planned and run.
    await this.#register();
    await tellAlarmPlaces(store, settings, this.#log);
    started.isComplete = true;
    return this;
  }

  async #register(): Promise<void> {
    const { store, definitions } = (await this.#opening) as Opened;
    await this.#untilAnswered(() => this.#defined.registerAll(this.#registry(store, definitions)));
    this.#started?.engine?.onSignal({ kind: "tasks" });
    const read = () => this.#defined.groupNumbers.read(this.#groups(), store.tasks);
    if (await this.#untilAnswered(read)) this.#started?.worker?.onSignal({ kind: "tasks" });
  }

  async #makeWorker(shared: Parameters<typeof workerOf>[0]): Promise<Worker> {
    await this.#untilAnswered(() => this.#defined.groupNumbers.read(this.#groups(), shared.store.tasks));
    const { tracing } = (await this.#opening) as Opened;
    await this.#handlers.isolates.start();
    const registry = () => this.#registry(shared.store, shared.definitions);
    const own = { defined: this.#defined, handlers: this.#handlers, listeners: this.#listeners };
    return workerOf(shared, { ...own, tracing, registry });
  }

  #groups(): string[] {
    return this.settings.groups ?? this.#defined.groups;
  }

  #join(store: Store, provider: MembershipProvider | undefined, standIn: StandIn): Promise<Membership> {
    const { settings } = this;
    const release = this.#defined.size > 0 ? this.#defined.release(settings.release) : null;
    const rename = () => {
      if (settings.name === null) this.#node = madeName();
      return settings.name === null;
    };
    const parts = { store, provider, standIn, clock: this.#clock, storeClock: this.#storeClock, log: this.#log };
    const optionsOf = () => {
      const nowMs = this.#clock.wall();
      const identity = identityOf(settings, this.#node, this.#groups(), this.#options, { release, nowMs });
      return memberOptions({ ...parts, serviceAt: this.#service.at, identity }, settings);
    };
    const { signal } = this.#stopping;
    return joinPatiently(optionsOf, { clock: this.#clock, failFast: settings.failFast, rename, signal });
  }

  readonly #untilAnswered = <T>(ask: () => Promise<T>) =>
    untilAnswered(ask, { ...this.settings, clock: this.#clock, signal: this.#stopping.signal });

  async #stop(): Promise<void> {
    this.#stopping.abort();
    const ending = this.#ending();
    // If `start` is still in progress, waits until it has ended. The caller of `start` gets its error.
    await ending.step("the start under way", () => Promise.allSettled([this.#starting, this.#opening]));
    await ending.step("handlers of events", () => this.events.close());
    await this.#end("stopped", ending, this.#locks);
    await ending.step("leaving the coordination service", () => this.#service.leave());
    this.#enqueues.close();
    this.runs.close(stopped());
    const opening = this.#opening;
    this.#opening = undefined;
    await closeStore(opening, ending, this.#abandon);
    ending.done();
  }

  #ending(): Ending {
    return new Ending({ clock: this.#clock, log: this.#log, drainMs: this.settings.drainMs });
  }

  async #end(why: string, ending: Ending, locks?: Locks): Promise<void> {
    const { isolates } = this.#handlers;
    await endNode({ started: this.#started, locks, isolates, opening: this.#opening, log: this.#log }, ending, why);
    this.#started = undefined;
    this.#listening = null;
  }

  #change({ author = this.#node, reason = "" }: Why): Change {
    return { author, reason, nowMs: this.#storeClock.now() };
  }

  /** Enqueues a batch. The same statement claims due runs for this process's worker; other runs are signalled to other workers. */
  #send(store: Store, writes: EnqueueWrite[], drawn: number[], signal: AbortSignal): Promise<Enqueued[]> {
    const until = this.settings.failFast ? AbortSignal.abort() : signal;
    const send = (local?: LocalClaims) => store.runs.enqueue(writes, this.#storeClock.now(), local, drawn, until);
    return this.#started?.worker?.enqueuing(send) ?? send();
  }

  #registry(store: Store, definitions: Definitions): Registry {
    const nowMs = this.#storeClock.now();
    const by = { release: this.#defined.release(this.settings.release), graceMs: this.settings.releaseGraceMs };
    return { tasks: store.tasks, definitions, author: this.#node, by, nowMs, log: this.#log };
  }
}
