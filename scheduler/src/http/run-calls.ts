import type { RunPlace } from "../browse-store.ts";
import type { Clock } from "../clock.ts";
import { type runRoutes, runStates } from "../contract-runs.ts";
import { dueOfEnqueue } from "../enqueue-options.ts";
import type { Enqueuer } from "../enqueuer.ts";
import { CarillonError } from "../errors.ts";
import { jsonText } from "../json.ts";
import { awaitRecall } from "../recall.ts";
import { outcomes, runUnknown } from "../run.ts";
import { attemptObject, isoTime, lateObject, relativeObject, runObject, runSummaryObject } from "../run-object.ts";
import type { EnqueueWrite, RunRecord, Store } from "../store.ts";
import { type EnqueueTracing, withContext } from "../trace-context.ts";
import type { Call, Some } from "./call.ts";
import { Gathered } from "./gathered.ts";
import { pageOf, readCursor, visiblePage } from "./pages.ts";
import { changeOf } from "./task-calls.ts";

export interface RunCallOptions {
  store: Store;
  clock: Clock;
  enqueuer: Enqueuer;
  tracing: EnqueueTracing | undefined;
  /** Of a run's log as it is written. */
  tail: Some<"tailLogs">["tailLogs"];
}

/** Of its children and followers a run shows so many. */
const relativesShown = 50;
const taskIdsMax = 10_000;
const entriesPerStatement = 500;
const readsPerStatement = 100;

const failureOf = (error: RunRecord["error"]) =>
  (typeof error === "object" && !Array.isArray(error) ? error : { message: String(error) }) as {
    code?: string;
    message?: string;
  } | null;

export const summary = (run: RunRecord) => {
  const { error, ...rest } = runSummaryObject(run);
  return { ...rest, error: failureOf(error) };
};

const recent = (run: RunRecord) => {
  const { state, run: number, due, ended, lateMs, tookMs } = runSummaryObject(run);
  return { run: number, state: state as (typeof outcomes)[number], due, ended: ended as string, lateMs, tookMs };
};

export const placeText = ({ atMs, lies }: { atMs: number; lies: string }) => `${atMs}${lies}`;

export function readPlace(text: string): { atMs: number; lies: string } {
  const [, atMs, lies, block, line] = /^(\d{1,15})(\((\d{1,10}),(\d{1,5})\))$/.exec(text) ?? [];
  // The store has no others.
  if (atMs !== undefined && lies !== undefined && Number(block) < 2 ** 32 && Number(line) < 2 ** 16)
    return { atMs: Number(atMs), lies };
  throw new CarillonError("REQUEST_INVALID", "that is no place in a log", { hint: "Give a line's id, as it is." });
}

export const logObject = ({
  atMs,
  lies,
  attempt,
  level,
  message,
  fields,
}: Awaited<ReturnType<Store["browse"]["logs"]>>[number]) => ({
  ...{ id: placeText({ atMs, lies }), at: isoTime(atMs), attempt, level, message, fields },
});

export function runCalls({ store, clock, enqueuer, tracing, tail }: RunCallOptions): Some<keyof typeof runRoutes> {
  const audits = new Gathered(async (entries: Parameters<Store["audit"]["record"]>[0]) => {
    await store.audit.record(entries);
    return entries;
  }, entriesPerStatement);
  /** Also where this server does not trace, a run goes on from the span of whoever asked for it. */
  const traced = <Made>(
    task: string | null,
    { traceparent }: Call,
    send: (context: string | undefined) => Promise<Made>,
  ): Promise<Made> => (tracing ? tracing.enqueue(task, send, traceparent) : send(traceparent));
  const wholes = new Gathered((runIds: number[]) => store.browse.whole(runIds, relativesShown), readsPerStatement);
  /** A task's number is its name's for ever, also when it is removed and made again. */
  const taskIds = new Map<string, number>();
  const taskIdOf = async (name: string): Promise<number> => {
    const known = taskIds.get(name);
    if (known !== undefined) return known;
    const { taskId } = await store.tasks.byName(name);
    if (taskIds.size >= taskIdsMax) taskIds.clear();
    taskIds.set(name, taskId);
    return taskId;
  };
  const writeOf = async (
    given: {
      task: string;
      payload?: unknown;
      in?: string | number | undefined;
      at?: string | undefined;
      key?: string | undefined;
      limitKey?: string | undefined;
      priority?: number | undefined;
    },
    source: "enqueue" | "manual",
    { nowMs }: Call,
    runId: number | undefined,
  ): Promise<EnqueueWrite> => {
    const { task, payload, in: delay, at, key = null, limitKey = null, priority = null } = given;
    if (delay !== undefined && at !== undefined)
      throw new CarillonError("OPTION_INVALID", "give `in` or `at`, not both");
    return {
      taskId: await taskIdOf(task),
      payload: jsonText(payload, `the payload of task ${task}`),
      dueMs: dueOfEnqueue(
        {
          ...(delay === undefined ? {} : { in: delay as number }),
          ...(at === undefined ? {} : { at: Date.parse(at) }),
        },
        nowMs,
      ),
      ...{ key, limitKey, priority, source, runId },
    };
  };

  return {
    async listRecentRuns({ task, each }, { reach }) {
      const known = await store.tasks.byNames([...new Set(task)].filter((name) => reach.has(name)));
      const ids = new Map(known.map(({ name, taskId }) => [name, taskId]));
      const any = {
        readyBeforeMs: null,
        sinceMs: null,
        untilMs: null,
        after: null,
        states: [...outcomes],
        limit: each,
      };
      const tasks = await Promise.all(
        task.map(async (name) => {
          const taskId = ids.get(name);
          const runs = taskId === undefined ? [] : await store.browse.runs({ ...any, taskId });
          return { task: name, runs: runs.map(recent) };
        }),
      );
      return { tasks };
    },

    async listRuns({ cursor, limit, task, state, since, until }, { nowMs, reach }) {
      if (task !== undefined) reach.check(task);
      const taskId = task === undefined ? null : await taskIdOf(task);
      const place = readCursor(cursor, ["string", "number", "number"]);
      const start = place && {
        phase: place[0] as RunPlace["phase"],
        atMs: place[1] as number,
        runId: place[2] as number,
      };
      const browse = {
        ...{ taskId, states: state ? runStates.filter((one) => state.includes(one)) : [...runStates] },
        readyBeforeMs: state ? null : Math.ceil(nowMs),
        sinceMs: since === undefined ? null : Date.parse(since),
        untilMs: until === undefined ? null : Date.parse(until),
      };
      const after = ({ endedMs, dueMs, runId }: RunRecord): RunPlace =>
        endedMs === null ? { phase: "live", atMs: dueMs, runId } : { phase: "ended", atMs: endedMs, runId };
      return visiblePage(
        { limit, start, everything: taskId !== null || reach.namespaces === null },
        (from, most) => store.browse.runs({ ...browse, after: from, limit: most }),
        (run) => reach.has(run.task),
        { item: summary, place: (run) => Object.values(after(run)), after },
      );
    },

    async getRun({ run: runId }, { reach }) {
      const whole = await wholes.ask(runId);
      if (!whole) throw runUnknown(runId);
      const { run, attempts, relatives, late, letter, redrives } = whole;
      const { error, ...rest } = runObject(run);
      return {
        ...{ ...rest, error: failureOf(error) },
        attempts: attempts.map((one) => ({
          ...attemptObject(one),
          ended: isoTime(one.endedMs),
          error: failureOf(one.error),
        })),
        relatives: relatives.filter((one) => reach.has(one.task)).map(relativeObject),
        late: late.map(lateObject),
        letter,
        redrives,
      };
    },

    async listLogs({ run, cursor, limit, order, beside, level, find }) {
      const from = (readCursor(cursor, ["string"])?.[0] as string | undefined) ?? beside;
      const look = { newest: order === "newest", ...(level ? { level } : {}), ...(find ? { find } : {}) };
      const lines = await store.browse.logs(run, from === undefined ? null : readPlace(from), limit + 1, look);
      // Of a run that is not there there is no log; one that has none yet is not the same.
      if (lines.length === 0) await store.runs.find(run);
      return pageOf(lines, limit, logObject, (line) => [placeText(line)]);
    },

    tailLogs: tail,

    async runTask({ task, reason, ...given }, call) {
      const write = await writeOf({ task, ...given }, "manual", call, call.runIds[0]);
      const { runId, created } = await traced(task, call, (context) => enqueuer.add({ ...write, context }));
      const { author, reason: why } = changeOf(call, reason);
      // The run tells of itself that it was asked for; this tells by whom. A crash between the two loses only this.
      if (created) {
        await audits.ask({
          ...{ atMs: call.nowMs, who: author, act: "run", about: "run", named: String(runId), before: null },
          ...{ after: { task, dueMs: write.dueMs, key: write.key }, why },
        });
      }
      return { run: runId, created };
    },

    async enqueueRuns({ runs }, call) {
      for (const { task } of runs) call.reach.check(task);
      const writes: EnqueueWrite[] = [];
      for (const [at, given] of runs.entries()) writes.push(await writeOf(given, "enqueue", call, call.runIds[at]));
      const task = runs.every((one) => one.task === runs[0]?.task) ? (runs[0]?.task ?? null) : null;
      const made = await traced(task, call, (context) => store.runs.enqueue(withContext(writes, context), call.nowMs));
      return { runs: made.map(({ runId, created }) => ({ run: runId, created })) };
    },

    async cancelRun({ run, reason }, call) {
      const { author, reason: why } = changeOf(call, reason);
      const outcome = await store.runs.cancel(run, why === "" ? `cancelled by ${author}` : why, call.nowMs, author);
      if (outcome === "cancelled") return { run, outcome };
      const [started] = await awaitRecall(store.runs, clock, [run]);
      return { run, outcome: started === undefined ? "cancelled" : "stopping" };
    },

    async rerunRun({ run, reason }, call) {
      const made = await store.operations.rerun(run, changeOf(call, reason), call.runIds[0]);
      return { run: made.runId, created: made.created };
    },

    async decideRun({ run, how, reason }, call) {
      const { author, reason: why } = changeOf(call, reason);
      await store.flow.decide(run, how, why, call.nowMs, author);
      return undefined;
    },
  };
}

export const isEnd = (state: string): boolean => (outcomes as readonly string[]).includes(state);
