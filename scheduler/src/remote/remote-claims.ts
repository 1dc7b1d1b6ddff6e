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
  /** Returns the number of claims that this process has. */
  held: () => number;
}

/** Error codes of failures that a further attempt cannot fix. */
const final = ["PAYLOAD_INVALID", "COMMAND_NOT_ALLOWED"];
const watchPauseMs = 100;
const watchesPerTimeout = 6;

/** The claims of one remote session, which are created and settled over HTTP. */
export class RemoteClaims implements Omit<ClaimStore, "reclaim"> {
  readonly #options: RemoteClaimsOptions;
  readonly #records = new Map<number, TaskRecord>();
  readonly #taskIds = new Map<string, number>();
  /** The trace contexts of received runs, until `Tracing` reads them. */
  readonly #traces = new Map<number, RunTrace>();
  /**
   * Fences of verdicts that the server accepted while a list of the session's claims was being read. That list may be older and still
   * contain these claims, so they are removed from it.
   */
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

  /** Returns the tasks' records to `Definitions`. The records came with the runs in poll responses. */
  async byIds(taskIds: number[]): Promise<TaskRecord[]> {
    return taskIds.flatMap((taskId) => this.#records.get(taskId) ?? []);
  }

  /** Returns trace contexts to `Tracing`. They came with the runs in poll responses. */
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
    // The spans are sent in a poll of their own, because a server of an older version rejects a poll that contains spans.
    leave: async (spans) => {
      for (const part of inParts(spans.map(({ runId, fence, context }) => ({ runId, fence, context }))))
        await this.#options.session.poll({ spans: part });
    },
  };

  /** Polls for runs; the server delays its response until there are runs or the waiting time ends. */
  async claim(request: ClaimRequest): Promise<ClaimAnswer> {
    const { session, claimAheadMs, storeClock, held } = this.#options;
    if (this.#stopping) return { runs: [], nextDue: async () => null };
    this.#claiming = true;
    try {
      // While this process has claims, the waiting time is short, so that an unresponsive server is noticed before the session can expire.
      const waitMs = held() > 0 ? this.#watchMs : limits.pollWaitMs;
      const want = Math.min(request.limit, limits.runsPerPoll);
      const answer = await session.poll({ want, aheadMs: claimAheadMs, waitMs }, this.#givenUp.signal);
      // The server has already waited for runs, so the next poll may follow at once.
      return { runs: this.#runsOf(answer), nextDue: async () => (this.#stopping ? null : storeClock.now()) };
    } finally {
      this.#claiming = false;
      this.watch();
    }
  }

  /** Returns no counts of future runs, because the server itself waits for runs that are due soon. */
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

  /** Stops claiming, and asks the server to address no more runs to this worker. The server then ends a poll that waits for runs. */
  async stopClaiming(): Promise<void> {
    this.#stopping = true;
    const { session, clock, timeoutMs, log } = this.#options;
    // The pending claim may wait at another server, at an unresponsive server, or for a new session, so it is aborted after a time. Runs
    // that it claims nevertheless are released when the session ends.
    const cancel = clock.after(timeoutMs / watchesPerTimeout, () => this.#givenUp.abort());
    this.#over.signal.addEventListener("abort", cancel, { once: true });
    try {
      await session.poll({ draining: true, ...(this.#claiming ? { waitMs: 0 } : {}) }, this.#givenUp.signal);
    } catch (error) {
      log.debug({ error: messageOf(error) }, "no server was told that this worker stops");
    }
  }

  /** Ends the polling of `watch`. Verdicts can still be sent. */
  async close(): Promise<void> {
    this.#over.abort();
    await this.#watching;
  }

  /**
   * Polls while this process has claims and no claim request waits at a server. These polls serve as heartbeats, and their responses
   * contain recalls.
   */
  watch(): void {
    if (this.#watching || this.#over.signal.aborted) return;
    this.#watching = this.#watch().finally(() => {
      this.#watching = undefined;
      // Claims may have arrived while the polling ended, so it starts again.
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

  /** The request that opened the new session has already moved the claims to it, so they are only read here. */
  adopt(): Promise<ClaimedRun[]> {
    return this.heldBy();
  }

  /** Sends the question in a poll of its own, because a server of an older version rejects a poll that contains `placesFor`. */
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

/** Returns the part of a task's record that a worker needs. It has no schedule, because only servers need the schedule. */
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
  // The delay is limited to the maximum in a poll; the server then limits it to the task's maximum delay.
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
