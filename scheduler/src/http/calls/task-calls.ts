import { isoTime } from "../../api/run-json.ts";
import { releaseObject, statisticsObject, taskObject } from "../../api/task-json.ts";
import { CarillonError } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";
import { nextDue } from "../../slots/upcoming-slots.ts";
import type { Store } from "../../store/store.ts";
import { statisticsOf } from "../../task/statistics/statistics.ts";
import type { TaskDefinition } from "../../task/task.ts";
import type { TaskRecord } from "../../task/task-record.ts";
import { differences } from "../../task/versions.ts";
import type { Some } from "../call.ts";
import { Gathered } from "./gathered.ts";
import { nameCursor, numberCursor, pageOf } from "./pages.ts";
import { payloadIssues } from "./payload-issues.ts";

const readsPerStatement = 100;

/** Lists the parts in which two definitions differ, with both values. */
export const changesOf = (a: TaskDefinition, b: TaskDefinition) =>
  (differences(a, b) as (keyof TaskDefinition)[]).map((part) => ({ part, was: a[part] ?? null, is: b[part] ?? null }));

const asTask = (
  record: TaskRecord,
  { counters, schedules }: { counters: Parameters<typeof taskObject>[1]; schedules: number },
  nowMs: number,
) => ({
  ...taskObject(record, counters, schedules, nowMs),
  id: record.taskId,
  description: record.definition.description,
  changed: isoTime(record.changedMs),
  bundle: record.bundle ?? null,
  accounted: (record.accountedMs ?? []).map(isoTime),
  definition: record.definition as unknown as Record<string, unknown>,
});

/** Converts a task to the form of the API, with its counters. */
export async function wholeTask(store: Store, record: TaskRecord, nowMs: number) {
  const figures = await figuresOf(store, [record]);
  return asTask(record, figures(record), nowMs);
}

/** Reads the counters of these tasks and their numbers of named schedules. */
async function figuresOf(store: Store, records: TaskRecord[]) {
  const [counters, schedules] = await Promise.all([
    store.tasks.counters(records.map(({ taskId }) => taskId)),
    store.tasks.scheduleCounts(records.map(({ name }) => name)),
  ]);
  return ({ taskId, name }: TaskRecord) => ({ counters: counters.get(taskId), schedules: schedules.get(name) ?? 0 });
}

export function taskCalls(
  store: Store,
): Some<
  | "listTasks"
  | "listComing"
  | "getTask"
  | "getTaskStatistics"
  | "listFollowers"
  | "listFlow"
  | "listTaskReleases"
  | "listTaskVersions"
  | "diffTask"
  | "checkPayload"
> {
  const reads = new Gathered(async (names: string[]) => {
    const records = await store.tasks.byNames([...new Set(names)]);
    const figures = await figuresOf(store, records);
    const byName = new Map(records.map((record) => [record.name, record]));
    return names.map((name) => {
      const record = byName.get(name);
      return record && { record, figures: figures(record) };
    });
  }, readsPerStatement);

  return {
    async listTasks({ cursor, limit, namespace, ...asked }, { nowMs, reach }) {
      const { group = null, matching = null, paused = null, owner = null, of = null, schedules } = asked;
      if (namespace !== undefined) reach.check(`${namespace}/`);
      const namespaces = namespace === undefined ? reach.namespaces : [namespace];
      const which = { group, matching, paused, owner, namespaces, of, schedules };
      const records = await store.browse.tasks({ ...which, afterName: nameCursor(cursor), limit: limit + 1 });
      const figures = await figuresOf(store, records);
      const item = (record: TaskRecord) => {
        const { counters, schedules } = figures(record);
        return taskObject(record, counters, schedules, nowMs);
      };
      return pageOf(records, limit, item, ({ name }) => [name]);
    },

    async listComing({ count }, { nowMs, reach }) {
      const records = await store.browse.comingTasks(reach.namespaces, count);
      const coming = records.flatMap((record) => {
        const next = nextDue(record, nowMs);
        return next === null ? [] : [{ task: record.name, group: record.definition.group, nextMs: next }];
      });
      coming.sort((a, b) => a.nextMs - b.nextMs);
      return { coming: coming.map(({ nextMs, ...one }) => ({ ...one, next: isoTime(nextMs) })) };
    },

    async getTask({ task }, { nowMs }) {
      const read = await reads.ask(task);
      if (!read) return store.tasks.byName(task).then((made) => wholeTask(store, made, nowMs));
      return asTask(read.record, read.figures, nowMs);
    },

    async getTaskStatistics({ task, by, since }, { nowMs }) {
      const sinceMs = since === undefined ? undefined : Date.parse(since);
      const taskId = await store.tasks.idOf(task);
      return statisticsObject(await statisticsOf(store.statistics, taskId, { by, sinceMs, nowMs }));
    },

    async listFollowers({ task }, { reach }) {
      const { taskId } = await store.tasks.byName(task);
      const followers = await store.flow.followers(taskId);
      // Followers in namespaces that the caller may not see are left out.
      return { followers: followers.filter((one) => [one.task, ...one.with].every((name) => reach.has(name))) };
    },

    async listFlow({ task }, { reach }) {
      if (task !== undefined) reach.check(task);
      const taskId = task === undefined ? null : (await store.tasks.byName(task)).taskId;
      const which = { taskId, namespaces: reach.namespaces, limit: limits.flowTasks + 1 };
      const names = await store.flow.connected(which);
      const shown = new Set(names.slice(0, limits.flowTasks));
      const records = await store.tasks.byNames([...shown]);
      const tasks = records.map(({ name, definition: { group, after }, paused }) => ({
        task: name,
        group,
        paused: paused !== null,
        after: (after?.tasks ?? []).filter((one) => shown.has(one)),
        on: after?.on ?? null,
      }));
      return { tasks: tasks.sort((a, b) => (a.task < b.task ? -1 : 1)), more: names.length > limits.flowTasks };
    },

    async listTaskReleases({ task }) {
      await store.tasks.byName(task);
      return { releases: (await store.tasks.releasesOf(task)).map(releaseObject) };
    },

    async listTaskVersions({ task, cursor, limit }) {
      const taskId = await store.tasks.idOf(task);
      const rows = await store.browse.versions(taskId, numberCursor(cursor), limit + 1);
      const item = ({ changedMs, definition, ...row }: (typeof rows)[number]) => ({
        ...row,
        changed: isoTime(changedMs),
        definition: definition as unknown as Record<string, unknown>,
      });
      return pageOf(rows, limit, item, ({ version }) => [version]);
    },

    async diffTask({ task, from, to }) {
      const { taskId, version } = await store.tasks.byName(task);
      const until = to ?? version;
      const found = await store.browse.versionsAt(taskId, [from, until]);
      const [a, b] = [from, until].map((wanted) => definitionAt(found, task, wanted));
      return { from, to: until, changes: changesOf(a as TaskDefinition, b as TaskDefinition) };
    },

    async checkPayload({ task, payload }) {
      const { payloadSchema } = (await store.tasks.byName(task)).definition;
      const issues = payloadSchema ? payloadIssues(payloadSchema, payload ?? null) : null;
      return { checked: issues !== null, issues: issues ?? [] };
    },
  };
}

export function definitionAt(
  found: { version: number; definition: TaskDefinition }[],
  task: string,
  wanted: number,
): TaskDefinition {
  const row = found.find(({ version }) => version === wanted);
  if (row) return row.definition;
  throw new CarillonError("VERSION_UNKNOWN", `task ${task} has no version ${wanted}`, {
    hint: "Its versions are listed with it.",
  });
}
