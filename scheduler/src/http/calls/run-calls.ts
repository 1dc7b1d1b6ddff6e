import type { Reach } from "../../access/access.ts";
import { runStates } from "../../api/contract/runs.ts";
import { attemptObject, isoTime, lateObject, relativeObject, runObject, runSummaryObject } from "../../api/run-json.ts";
import { labelsOfTexts } from "../../api/run-labels.ts";
import { limits } from "../../base/limits.ts";
import { labelsOf } from "../../run/enqueue-options.ts";
import type { RunFamily } from "../../run/flow.ts";
import { outcomes, runUnknown } from "../../run/run.ts";
import type { RunMatch, RunRecord } from "../../run/run-record.ts";
import { type PlacedLine, placeOfRun, type RunPlace } from "../../store/browse-store.ts";
import type { Store } from "../../store/store.ts";
import type { Some } from "../call.ts";
import { logReadText, placeText, readPlace } from "../log-places.ts";
import { ShownRuns } from "../shown-runs.ts";
import { Gathered } from "./gathered.ts";
import { cursorForeign, pageOf, readCursor, visiblePage } from "./pages.ts";

/** Returns the id of the task with this name, even if the task was removed. @throws TASK_UNKNOWN */
export type TaskIdOf = (name: string) => Promise<number>;

export interface RunCallOptions {
  store: Store;
  taskIdOf: TaskIdOf;
  /** Handles the call that streams a run's log. */
  tail: Some<"tailLogs">["tailLogs"];
}

/** The maximum number of children and followers that are returned with a run. */
const relativesShown = 50;
const taskIdsMax = 10_000;
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

export const logObject = ({ atMs, lies, attempt, level, message, fields }: PlacedLine) => ({
  id: placeText({ atMs, lies }),
  at: isoTime(atMs),
  attempt,
  level,
  message,
  fields,
});

/** Returns a cached `TaskIdOf`. A task's id never changes, even if the task is removed and created again, so caching is safe. */
export function knownTaskIds(store: Store): TaskIdOf {
  const taskIds = new Map<string, number>();
  return async (name: string): Promise<number> => {
    const known = taskIds.get(name);
    if (known !== undefined) return known;
    const taskId = await store.tasks.idOf(name);
    if (taskIds.size >= taskIdsMax) taskIds.clear();
    taskIds.set(name, taskId);
    return taskId;
  };
}

/** Decodes the cursor of a list of runs. @throws REQUEST_INVALID */
function readRunCursor(cursor: string | undefined): { start: RunPlace | null; shown: ShownRuns } {
  const place = readCursor(cursor, ["string", "number", "number", "string"]);
  if (place === null) return { start: null, shown: new ShownRuns() };
  const [phase, atMs, runId, runs] = place as [string, number, number, string];
  const shown = ShownRuns.read(runs);
  if (shown === null || (phase !== "live" && phase !== "ended")) throw cursorForeign();
  return { start: { phase, atMs, runId }, shown };
}

/**
 * Converts the runs of a family that the caller may view. A number that refers to another run is left out, because the caller may not be
 * allowed to view that run.
 */
function familyShown(runs: RunFamily["runs"], reach: Reach) {
  const seen = runs.filter(({ run }) => reach.has(run.task));
  const shown = new Set(seen.map(({ run }) => run.runId));
  return seen.map(({ run, parentId, inputs }) => ({
    ...summary(run),
    parent: parentId !== null && shown.has(parentId) ? parentId : null,
    inputs: inputs.filter((id) => shown.has(id)),
  }));
}

export function runCalls({
  store,
  taskIdOf,
  tail,
}: RunCallOptions): Some<"listRecentRuns" | "listRuns" | "getRun" | "getRunFamily" | "listLogs" | "tailLogs"> {
  const wholes = new Gathered((runIds: number[]) => store.browse.whole(runIds, relativesShown), readsPerStatement);

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
          const { runs } = taskId === undefined ? { runs: [] } : await store.browse.runs({ ...any, taskId });
          return { task: name, runs: runs.map(recent) };
        }),
      );
      return { tasks };
    },

    async listRuns({ cursor, limit, task, state, since, until, namespace, ...asked }, { nowMs, reach }) {
      if (task !== undefined) reach.check(task);
      if (namespace !== undefined) reach.check(`${namespace}/`);
      const taskId = task === undefined ? null : await taskIdOf(task);
      const { start, shown } = readRunCursor(cursor);
      // If a task is given, access to its namespace has already been checked, so the list needs no filter by namespace.
      const namespaces = namespace !== undefined ? [namespace] : taskId === null ? reach.namespaces : null;
      const { group, matching, key, source, label } = asked;
      const labels = label && labelsOf({ labels: labelsOfTexts(label) });
      const match: RunMatch = {
        ...(group === undefined ? {} : { group }),
        ...(matching === undefined ? {} : { matching }),
        ...(namespaces === null ? {} : { namespaces }),
        ...(key === undefined ? {} : { key }),
        ...(source === undefined ? {} : { source }),
        ...(labels ? { labels } : {}),
      };
      const browse = {
        taskId,
        match,
        states: state ? runStates.filter((one) => state.includes(one)) : [...runStates],
        readyBeforeMs: state ? null : Math.ceil(nowMs),
        sinceMs: since === undefined ? null : Date.parse(since),
        untilMs: until === undefined ? null : Date.parse(until),
      };
      return visiblePage(
        { limit, start, everything: true },
        async (from, most) => {
          const { runs: rows, next } = await store.browse.runs({ ...browse, after: from, limit: most });
          return { rows, next };
        },
        ({ task: of, runId }) => reach.has(of) && !shown.has(runId),
        {
          item: summary,
          after: (run): RunPlace | null => placeOfRun(run),
          cursor: (place) => (place ? [place.phase, place.atMs, place.runId, shown.text()] : []),
          shown: ({ endedMs, runId }) => endedMs === null && shown.add(runId),
        },
      );
    },

    async getRun({ run: runId }, { reach }) {
      const whole = await wholes.ask(runId);
      if (!whole) throw runUnknown(runId);
      const { run, attempts, relatives, late, letter, redrives } = whole;
      const { error, ...rest } = runObject(run);
      return {
        ...rest,
        error: failureOf(error),
        attempts: attempts.map((one) => ({
          ...attemptObject(one),
          ended: isoTime(one.endedMs),
          error: failureOf(one.error),
        })),
        relatives: relatives
          .filter((one) => reach.has(one.task))
          .slice(0, relativesShown)
          .map(relativeObject),
        late: late.map(lateObject),
        letter,
        redrives,
      };
    },

    async getRunFamily({ run: runId }, { reach }) {
      const { runs, more } = await store.flow.family(runId, limits.familyRuns);
      if (runs.length === 0) throw runUnknown(runId);
      return { runs: familyShown(runs, reach), more };
    },

    async listLogs({ run, cursor, limit, order, beside, level, attempt, find }) {
      const from = (readCursor(cursor, ["string"])?.[0] as string | undefined) ?? beside;
      const look = {
        newest: order === "newest",
        ...(level ? { level } : {}),
        ...(attempt ? { attempt } : {}),
        ...(find ? { find } : {}),
      };
      const place = from === undefined ? null : readPlace(from);
      const { lines, seen } = await store.browse.logs(run, place, limit + 1, look);
      // An empty list may also mean that the run does not exist; then `find` throws.
      if (lines.length === 0) await store.runs.find(run);
      const page = pageOf(lines, limit, logObject, (line) => [placeText(line)]);
      return { ...page, tail: logReadText({ seen, reading: null, place: null }) };
    },

    tailLogs: tail,
  };
}
