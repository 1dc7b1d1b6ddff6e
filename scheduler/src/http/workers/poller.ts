import type { SecretSource } from "../../access/secrets/secrets.ts";
import type { WorkerKey } from "../../access/worker-store.ts";
import type { JoinRequest, PollAnswer, PollRequest, Refusal } from "../../api/worker-protocol.ts";
import type { Clock } from "../../base/clock.ts";
import { CarillonError, messageOf } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";
import type { Log } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import { nameHolder } from "../../cluster/name-holder.ts";
import type { Signal } from "../../cluster/signal-store.ts";
import type { ClaimedRun } from "../../run/claim-store.ts";
import type { OnStart } from "../../run/handling/lateness.ts";
import type { Definitions } from "../../store/definitions.ts";
import type { Store } from "../../store/store.ts";
import type { StoreClock } from "../../store/store-clock.ts";
import { type RunTrace, storeTraces, type TraceSource } from "../../store/trace-context.ts";
import { checkName } from "../../task/names.ts";
import { handlerTask, scheduleCalled } from "../../task/schedule-of.ts";
import type { TaskDefinition } from "../../task/task.ts";
import type { Quotas } from "../quotas.ts";
import { ClaimGroups } from "./claim-groups.ts";
import { FlowCalls } from "./flow-calls.ts";
import type { InexactItems } from "./inexact-parts.ts";
import { Listening } from "./listening.ts";
import { type Attached, Sessions, sessionOver, storeSilent } from "./sessions.ts";
import { VerdictBatches } from "./verdict-batches.ts";
import { settlementOf } from "./verdicts.ts";
import { WaitingPoll } from "./waiting-poll.ts";

export interface PollerOptions {
  store: Store;
  secretSource: SecretSource;
  definitions: Definitions;
  clock: Clock;
  storeClock: StoreClock;
  random: Random;
  log: Log;
  quotas: Quotas;
  /** Called when a run's first attempt has started in a worker that polls this server. */
  onStart?: OnStart;
}

const defaultTimeoutMs = 6_000;
/**
 * A poll of a session with claims waits at most the session's timeout divided by this number, so that the next poll arrives before the
 * timeout.
 */
const waitsPerTimeout = 3;

/** Answers workers' polls. A poll contains its worker's reports, and waits until there is something to answer or its time is over. */
export class Poller {
  readonly #options: PollerOptions;
  readonly #sessions: Sessions;
  readonly #verdictBatches: VerdictBatches;
  readonly #claimGroups: ClaimGroups;
  readonly #listening: Listening;
  readonly #traces: TraceSource;
  #closed = false;

  constructor(options: PollerOptions) {
    this.#options = options;
    this.#traces = storeTraces(options.store.runs, options.storeClock);
    const now = () => options.storeClock.now();
    this.#sessions = new Sessions({
      ...options,
      onDirected: (session, dueMs) => this.#claimGroups.onDirected(session, dueMs),
    });
    this.#verdictBatches = new VerdictBatches(options.store.claims, now, options.log);
    this.#claimGroups = new ClaimGroups({ ...options, release: (session, runs) => this.#release(session, runs) });
    const flow = new FlowCalls(options.store, options.storeClock, options.secretSource, options.quotas);
    this.#listening = new Listening({ ...options, flow, verdictBatches: this.#verdictBatches });
  }

  onSignal(signal: Signal): void {
    if (signal.kind === "ready") this.#claimGroups.onReady(signal.dueMs);
    if (signal.kind === "directed") this.#sessions.directed(signal.sessionId, signal.dueMs);
    if (signal.kind === "tasks" || signal.kind === "resync") this.#claimGroups.onChanged();
    if (signal.kind === "recall" || signal.kind === "resync") {
      this.#sessions.lookForRecalls().catch((error) =>
        // The next heartbeat reads the recalls again.
        this.#options.log.debug({ error: messageOf(error) }, "recalls of remote workers could not be read yet"),
      );
    }
  }

  /** Called when the key was revoked: ends its sessions here and answers their waiting polls. */
  endSessionsOf(keyId: number): void {
    this.#sessions.endOf(keyId);
  }

  /** Answers all waiting polls and stops claiming. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#sessions.close();
    await this.#claimGroups.close();
    await this.#verdictBatches.close();
  }

  /**
   * Answers a poll.
   * @param gone aborts when the client has disconnected
   * @param more `traces`: true if the worker wants its runs' trace contexts; `inexact`: items that contain a number that JavaScript cannot
   * represent exactly
   * @throws SESSION_LOST, KEY_FORBIDDEN, KEY_SESSIONS, NODE_NAME_TAKEN, TASK_INVALID, STOPPED, STORE_…
   */
  async poll(
    key: WorkerKey,
    request: PollRequest,
    gone: AbortSignal,
    { traces = false, inexact }: { traces?: boolean; inexact?: InexactItems | undefined } = {},
  ): Promise<PollAnswer> {
    const { clock, storeClock } = this.#options;
    const beganMono = clock.monotonic();
    if (this.#closed) throw new CarillonError("STOPPED", "this server is stopping", { hint: "Go to another one." });
    const session = request.join
      ? await this.#join(key, request.join)
      : await this.#sessions.get(request.session as number, key.keyId);
    if (request.draining) await this.#options.store.routes.drain(session.id);
    if (request.waitMs !== undefined) session.waiting?.end();
    const refused: Refusal[] = [];
    const heard = await this.#listening.listen(key, session, request, refused, inexact);
    const places = request.placesFor && {
      places: await this.#options.store.claims.roomElsewhere(session.id, request.placesFor),
    };
    const found = await this.#compare(session, request.holds);
    let runs = found.runs;
    let turnedTo: number | undefined;
    if (request.leave) await this.#leave(session);
    else if (request.turn) {
      const turn = await this.#claimGroups.turn(session, request.want ?? limits.runsPerPoll, request.turn);
      runs = runs.concat(turn.runs);
      turnedTo = turn.lastTaskId;
    } else if (!request.join) {
      // Runs that are delivered again reduce the number of runs that are claimed for this poll.
      const left = () => Math.max(0, (request.want ?? 0) - runs.length);
      runs.push(...(await this.#ungiven(session, left())));
      const answerNow = runs.length + refused.length + found.lost.length > 0 || Object.keys(heard).length > 0;
      runs = runs.concat(await this.#runsFor(session, { ...request, want: left() }, gone, answerNow));
    }
    if (session.row.ended && !request.leave) throw sessionOver(session.id);
    // The client has disconnected, so the session's next poll gets these runs.
    if (gone.aborted) session.ungiven.push(...runs);
    // If the trace contexts cannot be read, the runs are delivered without them.
    const origins = traces && runs.length > 0 ? await this.#traces.tracesOf(runs).catch(() => undefined) : undefined;
    const nowMs = storeClock.now();
    for (const { fence } of session.recalls) session.told.add(fence);
    return {
      session: session.id,
      nowMs,
      tookMs: clock.monotonic() - beganMono,
      sureForMs: request.leave ? 0 : session.sureUntilMs - nowMs,
      runs: runs.map((run) => ({ ...this.#given(run, nowMs), ...traced(origins?.get(run.runId)) })),
      tasks: this.#facts(runs),
      recalls: session.recalls.flatMap(({ runId, fence, kind, why }) =>
        session.held.has(fence) ? [{ runId, fence, kind, why }] : [],
      ),
      ...(turnedTo === undefined ? {} : { turnedTo }),
      ...places,
      ...heard,
      refused,
      lost: found.lost,
    };
  }

  async #runsFor(
    session: Attached,
    request: PollRequest,
    gone: AbortSignal,
    answerNow: boolean,
  ): Promise<ClaimedRun[]> {
    const { waitMs = 0, aheadMs = 0 } = request;
    const want = session.row.draining ? 0 : (request.want ?? 0);
    const runs = want > 0 ? await this.#claimGroups.claim(session, want, aheadMs) : [];
    const recalled = session.recalls.some(({ fence }) => !session.told.has(fence));
    if (runs.length > 0 || answerNow || recalled || waitMs === 0 || gone.aborted || this.#closed) return runs;
    if (session.unheard) throw storeSilent();
    const sureMs = session.held.size > 0 ? session.row.timeoutMs / waitsPerTimeout : waitMs;
    // If a poll of this session is waiting already, the newer one replaces it.
    session.waiting?.end();
    const poll = new WaitingPoll({ want, aheadMs, waitMs: Math.min(waitMs, sureMs) }, this.#options.clock, gone);
    session.waiting = poll;
    poll.onEnd(() => {
      if (session.waiting === poll) session.waiting = undefined;
      session.heardMono = this.#options.clock.monotonic();
    });
    if (want > 0 && !poll.over) this.#claimGroups.wait(session, poll);
    const given = await poll.ended;
    return given.concat(await this.#ungiven(session, want - given.length));
  }

  /**
   * Returns claims that no answer has delivered and that the session still holds. The worker may have received such a claim from another
   * server and reported its result there, so the store is queried. If a claim ends during the query, the worker ignores it in the answer.
   */
  async #ungiven(session: Attached, most: number): Promise<ClaimedRun[]> {
    const runs = session.ungiven.splice(0, Math.max(0, most));
    if (runs.length === 0) return runs;
    try {
      const standings = await this.#listening.look(session, runs);
      const over = runs.filter((run) => standings.of(run)?.standing !== "held");
      for (const { fence } of over) session.drop(fence);
      return runs.filter((run) => !over.includes(run));
    } catch (error) {
      session.ungiven.push(...runs);
      throw error;
    }
  }

  // ---- joining and leaving

  async #join(key: WorkerKey, join: JoinRequest): Promise<Attached> {
    const { store, storeClock } = this.#options;
    checkName("a worker's name", join.name, limits.nodeNameLength);
    const groups = join.groups ?? key.groups;
    const foreign = groups.find((group) => !key.groups.includes(group));
    if (foreign !== undefined) {
      throw new CarillonError("KEY_FORBIDDEN", `the key ${key.name} does not allow group ${JSON.stringify(foreign)}`, {
        hint: `It allows ${key.groups.join(", ")}.`,
      });
    }
    const { name: node, host = "", pid = 0, version = "", labels = {}, concurrency = null, former } = join;
    const timeoutMs = join.timeoutMs ?? defaultTimeoutMs;
    const followed = former === undefined ? undefined : await this.#followed(key, node, former, join.instance ?? "");
    const identity = {
      node,
      role: "worker" as const,
      host,
      pid,
      version,
      timeoutMs,
      groups,
      labels,
      capacity: concurrency,
    };
    const owner = { keyId: key.keyId, instance: join.instance ?? "", tasks: join.tasks ?? null };
    const opened = await store.workers.open(identity, owner, storeClock.now());
    if ("takenBy" in opened) {
      throw new CarillonError("NODE_NAME_TAKEN", `the name ${node} is used by ${nameHolder(opened.takenBy)}`, {
        hint: "If that was this worker before, its session ends within its timeout. Else give this one another name.",
      });
    }
    if ("full" in opened) {
      throw new CarillonError("KEY_SESSIONS", `the key ${key.name} has ${opened.full} sessions`, {
        hint: "Stop workers that are not needed, or make another key: carillon keys create NAME.",
      });
    }
    if (followed !== undefined && followed !== opened.sessionId) await store.claims.adopt(followed, opened.sessionId);
    return this.#sessions.get(opened.sessionId, key.keyId);
  }

  /**
   * Checks the former session that a joining worker names. Only the same worker may take over its claims, and a worker without an instance
   * id only after the session has ended.
   * @returns the session whose claims move to the new one; undefined if the session no longer exists or was not opened with a key
   * @throws KEY_FORBIDDEN, NODE_NAME_TAKEN
   */
  async #followed(key: WorkerKey, node: string, former: number, instance: string): Promise<number | undefined> {
    const { store, storeClock } = this.#options;
    const row = await store.workers.attach(former, key.keyId, storeClock.now());
    if (!row) return undefined;
    if (row.keyId !== key.keyId || row.node !== node)
      throw new CarillonError("KEY_FORBIDDEN", `session ${former} was another worker's`);
    if (!row.ended && instance === "")
      throw new CarillonError("NODE_NAME_TAKEN", `session ${former} has not ended`, { hint: "Poll with it." });
    return former;
  }

  async #leave(session: Attached): Promise<void> {
    const { store, storeClock } = this.#options;
    session.row.ended = true;
    this.#sessions.forget(session);
    if (session.ungiven.length > 0) this.#release(session, session.ungiven.splice(0));
    await this.#verdictBatches.close();
    await store.routes.drain(session.id);
    await store.sessions.end(session.id, null, storeClock.now(), "left");
  }

  /**
   * Compares the session's claims in the store with the fences that the worker reports as held. Returns the runs that the worker does not
   * know, and the fences (`lost`) that are no longer claims and were not settled recently.
   */
  async #compare(session: Attached, holds: number[] | undefined): Promise<{ runs: ClaimedRun[]; lost: number[] }> {
    if (!holds) return { runs: [], lost: [] };
    const book = await this.#sessions.readBook(session);
    await this.#options.definitions.ensure(book);
    session.learn(book, this.#options.storeClock.now());
    session.ungiven = [];
    const [held, onBook] = [new Set(holds), new Set(book.map(({ fence }) => fence))];
    // The result of `readBook` may still contain a claim whose verdict is being written or has just been written.
    const stands = (fence: number) => session.held.has(fence);
    return {
      runs: book.filter(({ fence }) => !held.has(fence) && stands(fence)),
      lost: [...held].filter(
        (fence) => !onBook.has(fence) && !session.settled.has(fence) && !session.settledBefore.has(fence),
      ),
    };
  }

  /** Releases claims that no worker has received. */
  #release(session: Attached, runs: ClaimedRun[]): void {
    const nowMs = this.#options.storeClock.now();
    const settlements = runs.map((run) => {
      session.drop(run.fence);
      return settlementOf(session.id, run, { ...run, claimedMs: nowMs }, { kind: "released" }, nowMs);
    });
    this.#verdictBatches.add(settlements).catch((error) =>
      // The claims remain in the store, and are found when they are next compared with those that the worker holds.
      this.#options.log.debug({ error: messageOf(error) }, "claims could not be given back"),
    );
  }

  // ---- the parts of an answer

  #given(run: ClaimedRun, nowMs: number): PollAnswer["runs"][number] {
    const {
      runId,
      fence,
      attempt,
      dueMs,
      slotMs,
      priority,
      key,
      payload,
      taskId,
      state = null,
      overrides,
      labels,
    } = run;
    const shard = run.shard ? { index: run.shard[0], total: run.shard[1] } : null;
    const definition = this.#options.definitions.get(taskId)?.definition;
    const dueInMs = dueMs - nowMs;
    // The payload is the last field, so that a shell script can extract it without a JSON parser.
    return {
      runId,
      fence,
      ...(definition ? calledTo(definition) : { task: "" }),
      attempt,
      dueInMs,
      dueMs,
      ...(run.readyMs == null ? {} : { readyMs: run.readyMs }),
      slotMs,
      ...overrides,
      ...((run.losses ?? 0) + (run.snoozes ?? 0) > 0 ? { uncounted: (run.losses ?? 0) + (run.snoozes ?? 0) } : {}),
      ...(run.expiresMs == null ? {} : { expiresInMs: run.expiresMs - nowMs }),
      ...(labels && { labels }),
      priority,
      shard,
      state,
      key,
      payload,
    };
  }

  #facts(runs: ClaimedRun[]): PollAnswer["tasks"] {
    return [...new Set(runs.map(({ taskId }) => taskId))].flatMap((taskId) => {
      const known = this.#options.definitions.get(taskId);
      if (!known) return [];
      const { timeoutMs, graceMs, onWorkerLost, retry } = known.definition;
      const policies = { timeoutMs, graceMs, onWorkerLost, retry };
      return [{ ...calledTo(known.definition), taskId, version: known.version, ...policies }];
    });
  }
}

/** The names by which a worker identifies a task: the name of the task with the handler and, for a named schedule, the schedule's name. */
function calledTo(definition: TaskDefinition): { task: string; schedule?: string } {
  const schedule = scheduleCalled(definition);
  return { task: handlerTask(definition), ...(schedule !== null && { schedule }) };
}

const traced = (trace: RunTrace | undefined) => (trace === undefined ? {} : { trace });
