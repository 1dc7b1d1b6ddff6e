import type { Clock } from "../base/clock.ts";
import { closingMs, type Ending } from "../base/ending.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Membership } from "../cluster/membership.ts";
import type { Signal } from "../cluster/signal-store.ts";
import type { StandIn } from "../cluster/stand-in.ts";
import type { Locks } from "../coordination/locks.ts";
import type { JoinOptions } from "../coordination/open-session.ts";
import { marginMs } from "../coordination/trust.ts";
import { LateStarts, type LateStartsOptions } from "../engine/alarms/late-starts.ts";
import type { Alarms } from "../engine/alarms/watch.ts";
import type { Engine } from "../engine/engine.ts";
import type { Reconciler } from "../engine/reconciler.ts";
import type { HttpServer } from "../http/server.ts";
import type { RunNotice } from "../run/handler.ts";
import type { OnStart } from "../run/handling/lateness.ts";
import { longestBeatMs, type Settings } from "../settings/settings.ts";
import type { Store } from "../store/store.ts";
import type { Measuring } from "../telemetry/measuring.ts";
import type { Tracing } from "../telemetry/tracing.ts";
import { Worker, type WorkerOptions } from "../worker/worker.ts";
import type { Health } from "./acts/health.ts";
import type { DefinedTasks, Registry } from "./defined-tasks.ts";
import type { Handlers } from "./handlers.ts";
import type { Opened } from "./opened.ts";
import type { StandInOptions } from "./stand-in.ts";

/** The parts of a node. Each is set once it has started, so that after a failed start the parts that have started can be stopped. */
export interface Started {
  membership: Membership;
  standIn: StandIn;
  listening: AbortController;
  engine?: Engine | undefined;
  worker?: Worker | undefined;
  http?: HttpServer | undefined;
  alarms?: Alarms | undefined;
  late?: LateStarts;
  /** Resolves with a function that ends the export of metrics. */
  exported?: Promise<() => void> | undefined;
  reconciler?: Reconciler;
  heard?: Promise<void>;
  /** True once all parts have started and the tasks of this process are stored. */
  isComplete?: boolean;
}

/** Returns why this node cannot answer requests about the cluster; null if it can. */
export function unreadyOf(membership: Membership | undefined, stopping: AbortSignal): "stopping" | "store" | null {
  if (stopping.aborted) return "stopping";
  return membership?.trusted() ? null : "store";
}

/** The state of this process for its metrics. */
export const stateOf = (started: Started | undefined, { concurrency }: Settings) => ({
  term: started?.membership.term() ?? null,
  unreadable: started?.engine?.unreadable ?? 0,
  trusted: started?.membership.trusted() ?? null,
  worker: started?.worker ? { held: started.worker.held, concurrency } : null,
});

/** Returns the state of this node. @param stopping aborts when the process begins to stop */
export function healthOf(started: Started | undefined, node: string, stopping: AbortSignal): Health {
  const why = started?.isComplete || stopping.aborted ? unreadyOf(started?.membership, stopping) : "starting";
  return {
    ready: why === null,
    why,
    node,
    leads: (started?.membership.term() ?? null) !== null,
    running: started?.worker?.held ?? null,
  };
}

type OfSettings = "beatMs" | "clockBack" | "shownBeatMs";

/** Returns the options of this process's membership in the cluster. */
export const memberOptions = (parts: Omit<JoinOptions, OfSettings>, { beatMs, clockBack }: Settings): JoinOptions => ({
  ...parts,
  beatMs,
  clockBack,
  shownBeatMs: longestBeatMs,
});

/** Begins to export the measurements. Returns a function that counts each first attempt that starts, and reports late ones. */
export function countingStarts(
  started: Started,
  options: LateStartsOptions & Settings & { store: Store },
  measuring: Measuring,
): OnStart {
  const late = new LateStarts(options);
  started.late = late;
  const { store, storeClock } = options;
  started.exported = measuring.export(() => ({ store, nowMs: storeClock.now(), ...stateOf(started, options) }));
  return (task, runId, lateMs) => {
    late.add(task, runId, lateMs);
    measuring.started(lateMs);
  };
}

interface ForWorker {
  defined: DefinedTasks;
  handlers: Handlers;
  listeners: readonly ((notice: RunNotice) => void)[];
  tracing: Tracing | undefined;
  /**
   * Returns the stores and the author with which a task of this process is stored if one of its runs starts before all tasks have been
   * stored.
   */
  registry: () => Registry;
}

export function workerOf(
  shared: Omit<WorkerOptions, "claims" | "writeLogs" | "groupIds" | "handlerOf"> & { store: Store },
  { defined, handlers, listeners, tracing, registry }: ForWorker,
): Worker {
  const { store, storeClock } = shared;
  const flow = tracing?.flow(store.flow) ?? store.flow;
  return new Worker({
    ...shared,
    claims: handlers.codecs.around(tracing?.around(store.claims) ?? store.claims),
    flow: handlers.codecs.flow({
      ...flow,
      taskId: (name, asking) => (defined.get(name) ? defined.taskId(name, registry()) : flow.taskId(name, asking)),
    }),
    writeLogs: (lines) => store.runs.writeLogs(lines, storeClock.now()),
    groupIds: defined.groupNumbers.ids,
    handlerOf: (task) => handlers.of(task, tracing),
    listeners,
  });
}

/** Returns a listener that passes the store's signals to each part of a node. */
export function hearing({ membership, engine, reconciler, worker, http }: Started): (signal: Signal) => void {
  return (signal) => {
    if (signal.kind === "prompt" && signal.sessionId === membership.sessionId) membership.refresh();
    engine?.onSignal(signal);
    reconciler?.onSignal(signal);
    if (signal.kind !== "tasks") worker?.onSignal(signal);
    http?.onSignal(signal);
  };
}

/** Returns a listener that passes the ids of changed tasks to the engine, and prompts the worker to poll. */
export const following =
  ({ engine, worker }: Started) =>
  (taskIds: number[]): void => {
    engine?.onChanged(taskIds);
    worker?.onSignal({ kind: "tasks" });
  };

interface Parts {
  /** Undefined if the node has not started. */
  started: Started | undefined;
  /** Undefined if the stop must not release the locks. */
  locks: Locks | undefined;
  /** The threads and processes of isolated handlers. Those that are still running are terminated. */
  isolates: { close(): void };
  opening: Promise<Opened> | undefined;
  log: Log;
}

/**
 * Stops a node and releases the locks of its process. Locks are released after the handlers have ended, because handlers may use them. The
 * node leaves the cluster last, because the handlers' verdicts need its session.
 */
export async function endNode(
  { started, locks, isolates, opening, log }: Parts,
  ending: Ending,
  why: string,
): Promise<void> {
  await Promise.all([
    started && endWork(started, ending, why, opening, log),
    locks && ending.step("elections", () => locks.closeElections(ending.drainMs), ending.workMs),
  ]);
  isolates.close();
  if (locks) await ending.step("locks", () => locks.close());
  if (started) await leaveCluster(started, ending, why);
}

/** Hands over leadership at once, so that another node plans while the handlers here end. The other services stop at the same time. */
async function endWork(
  { membership, worker, http, alarms, late, exported, engine, reconciler }: Started,
  ending: Ending,
  why: string,
  opening: Promise<Opened> | undefined,
  log: Log,
): Promise<void> {
  const drain = async () => {
    try {
      await (await opening)?.store.routes.drain(membership.sessionId);
    } catch (error) {
      // If the notice fails, the runs addressed to this worker are released when its session ends.
      log.debug({ error: messageOf(error) }, "the store was not told that this worker stops");
    }
  };
  const work = () => worker?.stop(ending.drainMs, closingMs / 2);
  await Promise.all([
    ending.step("the scheduler's services", () => engine?.stop()),
    ending.step("handing leadership over", () => membership.handOver(why)),
    ending.step("the server's answers", () => http?.stop(0.8 * ending.workMs), ending.workMs),
    ending.step("alarms", () => alarms?.stop()),
    ending.step("late starts", () => late?.stop()),
    ending.step("the export of metrics", async () => (await exported)?.()),
    ending.step("changes of tasks", () => reconciler?.stop()),
    worker && ending.step("addressing no more runs to this worker", drain),
    worker && ending.step("handlers and their verdicts", work, ending.workMs),
  ]);
}

async function leaveCluster(started: Started, ending: Ending, why: string): Promise<void> {
  const { membership, standIn, listening, heard } = started;
  await ending.step("leaving the cluster", (abandoned) => membership.leave(why, abandoned));
  listening.abort();
  await Promise.all([
    ending.step("the thread that stands in", () => standIn.close()),
    ending.step("the store's signals", () => heard),
  ]);
}

/**
 * Closes the store of a process that has stopped.
 * @param opening undefined if the store was never opened
 * @param abandon aborted at the end, so that calls that still wait for the store, including an opening that cannot succeed, reject
 */
export async function closeStore(
  opening: Promise<Opened> | undefined,
  ending: Ending,
  abandon: AbortController,
): Promise<void> {
  let opened: Opened | undefined;
  await ending.step("closing the store", async () => {
    opened = await opening?.catch(() => undefined); // The caller that opened the store has received the error.
    opened?.enqueuer.close();
    await opened?.store.close(ending.leftMs / 2);
  });
  // Rejects calls that still wait for the closed store.
  abandon.abort();
  await ending.step("the embedded store", () => opened?.embedded?.release(), ending.leftMs);
}

/** Returns the stand-in's options for a process with direct access to the store. */
export function standInOf(
  { schema, beatMs, sessionTimeoutMs, standstillMs }: Settings,
  url: string,
  clock: Clock,
  log: Log,
): StandInOptions {
  const store = { url, schema, windowMs: sessionTimeoutMs - marginMs };
  return { place: { store }, beatMs, boundMs: standstillMs, clock, log };
}
