import type { GivenVerdict, PollAnswer, TaskFacts } from "../api/worker-protocol.ts";
import { type Clock, pause } from "../base/clock.ts";
import { CarillonError, messageOf } from "../base/errors.ts";
import { limits } from "../base/limits.ts";
import type { Log } from "../base/log.ts";
import type { ClaimAnswer, ClaimedRun, ClaimRequest, ClaimStore, Settlement, TurnRequest } from "../run/claim-store.ts";
import type { Overrides } from "../run/enqueue-options.ts";
import type { Onward } from "../run/flow.ts";
import type { LogLine } from "../run/run-record.ts";
import type { StoreClock } from "../store/store-clock.ts";
import type { RunTrace, TraceSource } from "../store/trace-context.ts";
import type { RetryPolicy } from "../task/policies.ts";
import { nameOfSchedule } from "../task/schedule-of.ts";
import { defineTask } from "../task/task.ts";
import type { TaskRecord } from "../task/task-record.ts";
import { inParts } from "./parts.ts";
import { over, type RemoteFlow } from "./remote-flow.ts";
import type { RemoteSession } from "./remote-session.ts";

export interface RemoteClaimsOptions {
  session: RemoteSession;
  flow: RemoteFlow;
  clock: Clock;
  storeClock: StoreClock;
  log: Log;
  claimAheadMs: number;
  timeoutMs: number;
  /** The number of claims in this process. */
  held: () => number;
}

/** Errors that another attempt cannot fix. */
const final = ["PAYLOAD_INVALID", "COMMAND_NOT_ALLOWED"];
const watchPauseMs = 100;
const watchesPerTimeout = 6;

/** The claims of one session, which are made and settled over HTTP. */
export class RemoteClaims implements Omit<ClaimStore, "reclaim"> {
  readonly #options: RemoteClaimsOptions;
  readonly #records = new Map<number, TaskRecord>();
  readonly #taskIds = new Map<string, number>();
  /** The traces of received runs, until they are read. */
  readonly #traces = new Map<number, RunTrace>();
  /** Fences whose verdict was answered while the session's claims were being read, because an older answer may still list these claims. */
  readonly #answered = new Set<number>();
  #reading = 0;
  #claiming = false;
  #stopping = false;
  #watching: Promise<void> | undefined;
  readonly #over = new AbortController();
  readonly #givenUp = new AbortController();

  constructor(options: RemoteClaimsOptions) {
    this.#options = options;
  }

  /** For `Definitions`: the facts about tasks that came with the runs in answers. */
  async byIds(taskIds: number[]): Promise<TaskRecord[]> {
    return taskIds.flatMap((taskId) => this.#records.get(taskId) ?? []);
  }

  /** For `Tracing`: the traces that came with the runs in answers. */
  readonly traces: TraceSource = {
    tracesOf: async (runs) => {
      const found = new Map(
        runs.flatMap(({ runId }): [number, RunTrace][] => {
          const trace = this.#traces.get(runId);
          return trace ? [[runId, trace]] : [];
        }),
      );
      for (const runId of found.keys()) this.#traces.delete(runId);
      return found;
    },
    // Sent in a separate poll, so that a server of an older version, which does not know this part, refuses nothing else.
    leave: async (spans) => {
      for (const part of inParts(spans.map(({ runId, fence, context }) => ({ runId, fence, context }))))
        await this.#options.session.poll({ spans: part });
    },
  };

  /** The poll waits at the server until there are runs. */
  async claim(request: ClaimRequest): Promise<ClaimAnswer> {
    const { session, claimAheadMs, storeClock, held } = this.#options;
    if (this.#stopping) return { runs: [], nextDue: async () => null };
    this.#claiming = true;
    try {
      // While this process holds claims, a silent server must be noticed before trust in the session ends.
      const waitMs = held() > 0 ? this.#watchMs : limits.pollWaitMs;
      const want = Math.min(request.limit, limits.runsPerPoll);
      const answer = await session.poll({ want, aheadMs: claimAheadMs, waitMs }, this.#givenUp.signal);
      // The server has already waited, so the next poll may follow at once.
      return { runs: this.#runsOf(answer), nextDue: async () => (this.#stopping ? null : storeClock.now()) };
    } finally {
      this.#claiming = false;
      this.watch();
    }
  }

  /** Returns nothing, because the server itself waits for runs that are due soon. */
  async coming(): ReturnType<ClaimStore["coming"]> {
    return { counts: [], nextMs: null };
  }

  async turn(request: TurnRequest): ReturnType<ClaimStore["turn"]> {
    const { waitingTaskIds, leastPriority, each, afterTaskId } = request;
    if (this.#stopping) return { runs: [], lastTaskId: afterTaskId };
    const turn = { exceptTaskIds: waitingTaskIds.slice(0, limits.heldPerSession), leastPriority, each, afterTaskId };
    const answer = await this.#options.session.poll(
      { want: Math.min(request.limit, limits.runsPerPoll), turn },
      this.#givenUp.signal,
    );
    return { runs: this.#runsOf(answer), lastTaskId: answer.turnedTo ?? 0 };
  }

  /** Stops claims, and runs addressed to this worker; the server answers a waiting claim. */
  async stopClaiming(): Promise<void> {
    this.#stopping = true;
    const { session, clock, timeoutMs, log } = this.#options;
    // A claim may wait at another server, at a silent one, or for a session that cannot be had, so it is aborted. Runs claimed meanwhile
    // are released with the session.
    const cancel = clock.after(timeoutMs / watchesPerTimeout, () => this.#givenUp.abort());
    this.#over.signal.addEventListener("abort", cancel, { once: true });
    try {
      await session.poll({ draining: true, ...(this.#claiming ? { waitMs: 0 } : {}) }, this.#givenUp.signal);
    } catch (error) {
      log.debug({ error: messageOf(error) }, "no server was told that this worker stops");
    }
  }

  /** Ends the polls of `watch`; verdicts can still be sent. */
  async close(): Promise<void> {
    this.#over.abort();
    await this.#watching;
  }

  /** Polls while claims are held and no claim waits at a server: these polls are heartbeats, and return recalls. */
  watch(): void {
    if (this.#watching || this.#over.signal.aborted) return;
    this.#watching = this.#watch().finally(() => {
      this.#watching = undefined;
      // Starts again if claims arrived while the watch ended.
      if (this.#options.held() > 0) this.watch();
    });
  }

  async #watch(): Promise<void> {
    const { session, held, clock, log } = this.#options;
    while (!this.#over.signal.aborted && held() > 0) {
      if (this.#claiming) {
        await pause(clock, watchPauseMs, this.#over.signal);
        continue;
      }
      try {
        await session.poll({ waitMs: this.#watchMs }, this.#over.signal);
      } catch (error) {
        log.debug({ error: messageOf(error) }, "no server answered; trying the next");
        await pause(clock, watchPauseMs, this.#over.signal);
      }
    }
  }

  async settle(_sessionId: number, settlements: Settlement[]): Promise<Set<number>> {
    const { flow, storeClock } = this.#options;
    const nowMs = storeClock.now();
    for (const { runId } of settlements) this.#traces.delete(runId);
    const refused = new Set<number>();
    for (const verdicts of inParts(settlements.map((item) => verdictOf(item, nowMs, flow)))) {
      const answer = await this.#options.session.pollUntilAnswered({ verdicts });
      if (this.#reading > 0) for (const { fence } of verdicts) this.#answered.add(fence);
      for (const { fence, code, message, runId } of answer.refused) {
        refused.add(fence);
        this.#options.log.debug({ run: runId, fence, code }, message);
      }
    }
    return refused;
  }

  async settleIn(): Promise<boolean> {
    throw new CarillonError("STORE_NEEDED", "run.complete needs the store, which a remote worker does not have", {
      hint: "Return the result from the handler; for a transaction with it run the task in a process with the store.",
    });
  }

  async heldBy(): Promise<ClaimedRun[]> {
    this.#reading++;
    try {
      const runs = this.#runsOf(await this.#options.session.poll({ holds: [] }, this.#givenUp.signal));
      return runs.filter(({ fence }) => !this.#answered.has(fence));
    } finally {
      if (--this.#reading === 0) this.#answered.clear();
    }
  }

  /** The join that opened the new session has already moved the claims, so this only reads them. */
  adopt(): Promise<ClaimedRun[]> {
    return this.heldBy();
  }

  /** Sent in a separate poll, so that a server of an older version, which does not know this part, refuses nothing else. */
  async roomElsewhere(_sessionId: number, placesFor: number[]): ReturnType<ClaimStore["roomElsewhere"]> {
    return (await this.#options.session.poll({ placesFor }, this.#givenUp.signal)).places ?? [];
  }

  async recalls(): ReturnType<ClaimStore["recalls"]> {
    return this.#options.session.recalls;
  }

  async report(_sessionId: number, reports: Parameters<ClaimStore["report"]>[1]): Promise<Set<number>> {
    const nowMs = this.#options.storeClock.now();
    const told = reports.map(({ runId, fence, startedMs, progress }) => ({
      runId,
      fence,
      startedAgoMs: Math.max(0, nowMs - startedMs),
      ...(progress === null ? {} : { progress: JSON.parse(progress) as unknown }),
    }));
    const standing = new Set(told.map(({ fence }) => fence));
    for (const part of inParts(told)) {
      const { refused } = await this.#options.session.poll({ reports: part });
      for (const { fence, code } of refused) if (over.includes(code)) standing.delete(fence);
    }
    return standing;
  }

  async writeLogs(lines: LogLine[]): Promise<void> {
    const nowMs = this.#options.storeClock.now();
    const told = lines.map(({ runId, fence = 0, level, message, fields, atMs }) => ({
      runId,
      fence,
      level,
      message,
      agoMs: Math.max(0, nowMs - atMs),
      ...(fields === null ? {} : { fields: fields as Record<string, unknown> }),
    }));
    for (const logs of inParts(told)) await this.#options.session.poll({ logs });
  }

  get #watchMs(): number {
    return Math.round(this.#options.timeoutMs / watchesPerTimeout);
  }

  #runsOf({ nowMs, runs, tasks }: PollAnswer): ClaimedRun[] {
    for (const facts of tasks) {
      this.#taskIds.set(nameOf(facts), facts.taskId);
      if ((this.#records.get(facts.taskId)?.version ?? 0) < facts.version)
        this.#records.set(facts.taskId, recordOf(facts));
    }
    return runs.map((run) => {
      const { runId, fence, attempt, dueMs, readyMs, slotMs, priority, key, payload, shard, state, trace } = run;
      if (trace) this.#traces.set(runId, trace);
      const taskId = this.#taskIds.get(nameOf(run)) as number;
      const version = this.#records.get(taskId)?.version ?? 1;
      return {
        runId,
        taskId,
        version,
        fence,
        attempt,
        dueMs,
        readyMs,
        slotMs,
        priority,
        key,
        payload: payload as never,
        shard: shard && [shard.index, shard.total],
        losses: run.uncounted,
        overrides: overridesOf(run),
        expiresMs: run.expiresInMs === undefined ? null : nowMs + run.expiresInMs,
        labels: run.labels ?? null,
        state: (state ?? null) as never,
        linked: false,
      };
    });
  }
}

const overridesOf = ({ timeoutMs, retry }: PollAnswer["runs"][number]): Overrides | null =>
  timeoutMs === undefined && retry === undefined
    ? null
    : {
        ...(timeoutMs === undefined ? {} : { timeoutMs }),
        ...(retry === undefined ? {} : { retry: retry as RetryPolicy }),
      };

const nameOf = ({ task, schedule }: Pick<TaskFacts, "task" | "schedule">): string =>
  schedule === undefined ? task : nameOfSchedule(task, schedule);

/** The facts about a task that a worker needs; only servers need its schedule. */
function recordOf(facts: TaskFacts): TaskRecord {
  const { task, schedule, taskId, version, timeoutMs, graceMs, onWorkerLost, retry } = facts;
  const name = nameOf(facts);
  const definition = {
    ...defineTask(name),
    ...(schedule !== undefined && { of: task }),
    timeoutMs,
    graceMs,
    onWorkerLost: onWorkerLost as "retry",
    retry: retry as ReturnType<typeof defineTask>["retry"],
  };
  return { taskId, name, version, definition, groupId: 0, paused: null, changedMs: 0, nextSlotMs: null };
}

function verdictOf(
  { runId, fence, startedMs, endedMs, verdict }: Settlement,
  nowMs: number,
  flow: RemoteFlow,
): GivenVerdict {
  const ago = (ms: number) => Math.max(0, nowMs - ms);
  const said = {
    runId,
    fence,
    endedAgoMs: ago(endedMs),
    ...(startedMs === null ? {} : { startedAgoMs: ago(startedMs) }),
  };
  if (verdict.kind === "released") return { ...said, outcome: "released" };
  const error = verdict.error === null ? undefined : (JSON.parse(verdict.error) as NonNullable<GivenVerdict["error"]>);
  const failure = error === undefined ? {} : { error };
  if (verdict.kind === "ended" && verdict.outcome === "succeeded") {
    const { result, onward } = verdict;
    const fields = { ...parsed("result", result), ...(onward ? { onward: onwardOf(onward, flow) } : {}) };
    return { ...said, outcome: "succeeded", ...fields };
  }
  if (verdict.kind === "ended" && verdict.outcome === "cancelled") return { ...said, outcome: "cancelled", ...failure };
  if (verdict.cutShort) return { ...said, outcome: "stopped", ...failure };
  if (verdict.kind === "retry" && verdict.inMs !== undefined)
    return { ...said, outcome: verdict.snoozed ? "snoozed" : "failed", retryInMs: verdict.inMs, ...failure };
  const retry = verdict.kind === "retry" && !final.includes(error?.code ?? "");
  // A delay longer than a poll may contain is shortened; the server limits it to the task's own maximum anyway.
  const askedMs = verdict.kind === "retry" ? verdict.askedMs : undefined;
  const asked = askedMs === undefined ? {} : { retryAfterMs: Math.min(askedMs, limits.agoMs) };
  return { ...said, outcome: "failed", retry, ...asked, ...failure };
}

function onwardOf(onward: Onward, flow: RemoteFlow): NonNullable<GivenVerdict["onward"]> {
  return onward.kind === "join"
    ? { join: flow.nameOf(onward.taskId), ...parsed("payload", onward.payload) }
    : { continueAs: { ...parsed("payload", onward.payload), ...parsed("state", onward.state) } };
}

const parsed = <Name extends string>(name: Name, text: string | null) =>
  (text === null ? {} : { [name]: JSON.parse(text) as unknown }) as { [name in Name]?: unknown };
