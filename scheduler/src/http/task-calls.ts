import { principalText, Reach } from "../access.ts";
import type { Clock } from "../clock.ts";
import { judgedSlot } from "../coming-slots.ts";
import type { taskRoutes } from "../contract-tasks.ts";
import { CarillonError } from "../errors.ts";
import { namespaceOf } from "../namespace.ts";
import { awaitRecall } from "../recall.ts";
import { iso, isoTime } from "../run-object.ts";
import { compileSchedule } from "../schedule.ts";
import type { Change, Store, TaskRecord } from "../store.ts";
import { defineTask, type TaskDefinition, type TaskOptions } from "../task.ts";
import { edited, editedParts, keepEdits, partCalled, restored, reverted } from "../task-edits.ts";
import { taskObject } from "../task-object.ts";
import { differences } from "../task-versions.ts";
import { coming, nextDue, nextOf, plannedSlots } from "../upcoming-slots.ts";
import type { Call, Some } from "./call.ts";
import { Gathered } from "./gathered.ts";
import { cursorText, nameCursor, numberCursor, pageOf } from "./pages.ts";
import { payloadIssues } from "./payload-issues.ts";

const readsPerStatement = 100;
/** None is called so. */
const noBundle = "";

export const changeOf = ({ who, nowMs }: Call, reason: string | undefined): Change => ({
  author: who === null ? "nobody" : principalText(who),
  reason: reason ?? "",
  nowMs,
});

/** The parts of `a` and `b` that differ, and how. */
export const changesOf = (a: TaskDefinition, b: TaskDefinition) =>
  (differences(a, b) as (keyof TaskDefinition)[]).map((part) => ({ part, was: a[part] ?? null, is: b[part] ?? null }));

const asTask = (record: TaskRecord, counters: Parameters<typeof taskObject>[1], nowMs: number) => ({
  ...taskObject(record, counters, nowMs),
  id: record.taskId,
  description: record.definition.description,
  changed: isoTime(record.changedMs),
  bundle: record.bundle ?? null,
  definition: record.definition as unknown as Record<string, unknown>,
});

export function taskCalls(store: Store, clock: Clock): Some<keyof typeof taskRoutes> {
  const reads = new Gathered(async (names: string[]) => {
    const records = await store.tasks.byNames([...new Set(names)]);
    const counters = await store.tasks.counters(records.map(({ taskId }) => taskId));
    const byName = new Map(records.map((record) => [record.name, record]));
    return names.map((name) => {
      const record = byName.get(name);
      return { record, counters: record && counters.get(record.taskId) };
    });
  }, readsPerStatement);
  const whole = async (record: TaskRecord, nowMs: number) => {
    const counters = await store.tasks.counters([record.taskId]);
    return asTask(record, counters.get(record.taskId), nowMs);
  };
  /** @param make from the version that the caller named, or else from the one that is there */
  const change = async (
    name: string,
    call: Call,
    reason: string | undefined,
    make: (present: TaskRecord) => TaskDefinition | Promise<TaskDefinition>,
  ) => {
    const before = await store.tasks.byName(name);
    // Refused by the store below, unless it is this version.
    const expected = call.ifVersion ?? before.version;
    const definition = expected === before.version ? await make(before) : before.definition;
    checkUse(definition, before.definition, call);
    const { record, changed } = await store.tasks.save(definition, expected, changeOf(call, reason));
    return {
      ...{ name, version: record.version, changed, edited: editedParts(record.definition) as string[] },
      changes: changed ? changesOf(before.definition, record.definition) : [],
    };
  };
  /** Of a task that was removed its last version, which the next one follows; else 0. */
  const versionGone = async (task: string): Promise<number> => {
    const [row] = await store.applied.read([task], noBundle);
    return row?.removed ? row.version : 0;
  };

  return {
    async listTasks({ cursor, limit, group = null, matching = null, paused = null, namespace }, { nowMs, reach }) {
      if (namespace !== undefined) reach.check(`${namespace}/`);
      const namespaces = namespace === undefined ? reach.namespaces : [namespace];
      const browse = { afterName: nameCursor(cursor), group, matching, paused, namespaces, limit: limit + 1 };
      const records = await store.browse.tasks(browse);
      const counters = await store.tasks.counters(records.map(({ taskId }) => taskId));
      const item = (record: TaskRecord) => taskObject(record, counters.get(record.taskId), nowMs);
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
      const { record, counters } = await reads.ask(task);
      if (!record) return store.tasks.byName(task).then((made) => whole(made, nowMs));
      return asTask(record, counters, nowMs);
    },

    async listFollowers({ task }, { reach }) {
      const { taskId } = await store.tasks.byName(task);
      const followers = await store.flow.followers(taskId);
      // Of another namespace's tasks nothing is told.
      return { followers: followers.filter((one) => [one.task, ...one.with].every((name) => reach.has(name))) };
    },

    async listTaskVersions({ task, cursor, limit }) {
      const { taskId } = await store.tasks.byName(task);
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

    async listUpcomingSlots({ task, after, count }, { nowMs }) {
      const record = await store.tasks.byName(task);
      const { schedule } = record.definition;
      const delayed = schedule.type === "every" && schedule.mode === "delay";
      const next = record.nextSlotMs === null ? [] : [record.nextSlotMs];
      const slots = delayed ? next : plannedSlots(record, after === undefined ? nowMs : Date.parse(after), count);
      return {
        zone: schedule.type === "cron" ? schedule.zone : "UTC",
        words: compileSchedule(schedule).words(),
        paused: record.paused !== null,
        slots: slots.map((slotMs) => {
          const { dueMs, skipped, note = "" } = judgedSlot(coming(record), slotMs);
          const due = skipped === undefined ? dueMs : null;
          const words = skipped === undefined ? note : `skipped: ${skipped}`;
          return { slot: isoTime(slotMs), due: iso(due), note: words };
        }),
      };
    },

    async listSlots({ task, cursor, limit, since, until }) {
      const { taskId } = await store.tasks.byName(task);
      const fromMs = since === undefined ? 0 : Date.parse(since);
      const before = Math.min(numberCursor(cursor), until === undefined ? Number.MAX_SAFE_INTEGER : Date.parse(until));
      const rows = await store.browse.slots(taskId, fromMs, before, limit + 1);
      const item = ({ slotMs, runId, acceptedMs, ...row }: (typeof rows)[number]) => ({
        ...{ ...row, slot: isoTime(slotMs), run: runId, accepted: isoTime(acceptedMs) },
      });
      const page = pageOf(rows, limit, item, ({ slotMs }) => [slotMs]);
      // Of the time that this page is about. With more of them than there is room for it ends above the next.
      const last = rows[limit - 1]?.slotMs;
      const reachMs = page.next === null || last === undefined ? fromMs : last;
      const { ranges } = await store.history.slots(taskId, reachMs, before - 1, limit + 1);
      const endMs = ranges[limit] && ranges[limit].toMs + 1;
      const isCut = endMs !== undefined && endMs < before;
      return {
        items: isCut ? page.items.filter((_, at) => (rows[at]?.slotMs as number) >= endMs) : page.items,
        next: isCut ? cursorText(endMs) : page.next,
        ranges: ranges.slice(0, limit).map(({ fromMs: from, toMs, ...range }) => ({
          ...range,
          from: isoTime(from),
          to: isoTime(toMs),
        })),
      };
    },

    async checkPayload({ task, payload }) {
      const { payloadSchema } = (await store.tasks.byName(task)).definition;
      const issues = payloadSchema ? payloadIssues(payloadSchema, payload ?? null) : null;
      return { checked: issues !== null, issues: issues ?? [] };
    },

    async createTask({ task, options, reason }, call) {
      const definition = defineTask(task, options as TaskOptions);
      checkUse(definition, undefined, call);
      const { record, changed } = await store.tasks
        .save(definition, await versionGone(task), changeOf(call, reason))
        .catch((error: unknown) => {
          throw error instanceof CarillonError && error.code === "TASK_STALE" ? taken(task) : error;
        });
      if (!changed) throw taken(task);
      return whole(record, call.nowMs);
    },

    async defineTask({ task, options, reason }, call) {
      const [row] = await store.applied.read([task], noBundle);
      const before = row && !row.removed ? row.definition : undefined;
      const definition = keepEdits(defineTask(task, options as TaskOptions), before);
      checkUse(definition, before, call);
      // "0" means that there is none; the store counts on from what was removed.
      const none = before === undefined && call.ifVersion === 0;
      const expected = none ? (row?.version ?? 0) : (call.ifVersion ?? row?.version ?? 0);
      const { record, changed } = await store.tasks.save(definition, expected, changeOf(call, reason));
      return {
        ...{ name: task, version: record.version, changed, edited: editedParts(record.definition) as string[] },
        changes: changed && before ? changesOf(before, record.definition) : [],
      };
    },

    editTask: ({ task, options, reason }, call) =>
      change(task, call, reason, ({ definition }) => edited(definition, options as TaskOptions)),

    revertTask: ({ task, parts, version, reason }, call) =>
      change(task, call, reason, async ({ taskId, definition }) => {
        if (version === undefined) return reverted(definition, wantedParts(task, definition, parts));
        if (parts !== undefined)
          throw new CarillonError("OPTION_INVALID", "parts and a version were given", { hint: "Give one of the two." });
        const found = await store.browse.versionsAt(taskId, [version]);
        return restored(definition, definitionAt(found, task, version));
      }),

    async removeTask({ task, reason }, call) {
      const { recalled } = await store.tasks.remove(task, changeOf(call, reason));
      await awaitRecall(store.runs, clock, recalled);
      return undefined;
    },

    async pauseTask({ task, reason }, call) {
      const { recalled } = await store.tasks.pause(task, changeOf(call, reason));
      return { name: task, paused: true, running: await awaitRecall(store.runs, clock, recalled) };
    },

    async resumeTask({ task, reason }, call) {
      await store.tasks.resume(task, changeOf(call, reason));
      const record = await store.tasks.byName(task);
      return { name: task, paused: false, next: iso(nextOf(record, call.nowMs)) };
    },
  };
}

/**
 * What a task may name beside itself: groups and calendars of its own namespace and those of none, which are everyone's; and
 * tasks to come after wherever who writes it may see them. @throws ACCESS_DENIED
 */
export function checkUse(
  definition: TaskDefinition,
  before: TaskDefinition | undefined,
  { who, reach }: Pick<Call, "who" | "reach">,
): void {
  if (who === null || reach.namespaces === null) return;
  const there = usedBy(before);
  const { shared, upstream } = usedBy(definition);
  // What it had already somebody gave it who might.
  const added = (names: string[], had: string[]) => names.filter((name) => !had.includes(name));
  for (const used of added(shared, there.shared))
    if (used.includes("/") && namespaceOf(used) !== namespaceOf(definition.name)) reach.check(used);
  const sees = new Reach(who, "viewer");
  for (const used of added(upstream, there.upstream)) sees.check(used);
}

const usedBy = (definition: TaskDefinition | undefined) => ({
  shared: [definition?.group, definition?.calendar?.name].filter((name) => name !== undefined),
  upstream: definition?.after?.tasks ?? [],
});

const taken = (name: string) =>
  new CarillonError("TASK_NAME_TAKEN", `there is a task ${name} already`, { hint: "Edit it, or choose another name." });

function definitionAt(
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

function wantedParts(task: string, definition: TaskDefinition, names: string[] | undefined) {
  const there = editedParts(definition);
  const wanted = names === undefined ? there : names.map((name) => partCalled(name) ?? name);
  const wrong = wanted.find((part) => !(there as string[]).includes(part));
  if (wrong === undefined) return wanted as typeof there;
  throw new CarillonError("OPTION_INVALID", `${JSON.stringify(wrong)} of task ${task} was not edited`, {
    hint: there.length === 0 ? "Nothing of it was." : `Edited are: ${there.join(", ")}.`,
  });
}
