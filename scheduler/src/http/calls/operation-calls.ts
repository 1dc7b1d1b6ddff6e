import type { Reach } from "../../access/access.ts";
import { comparisonObject } from "../../api/calendar-json.ts";
import type { calendarRoutes } from "../../api/contract/calendars.ts";
import type { operationRoutes } from "../../api/contract/operations.ts";
import type { Read } from "../../api/contract.ts";
import { failureGroupObject, operationObject } from "../../api/operation-json.ts";
import { isoTime } from "../../api/run-json.ts";
import { labelsOfTexts } from "../../api/run-labels.ts";
import type { Clock } from "../../base/clock.ts";
import { limits } from "../../base/limits.ts";
import { namespaceOf } from "../../base/namespace.ts";
import { labelsOf } from "../../run/enqueue-options.ts";
import { failureGroups } from "../../run/handling/failure-groups.ts";
import type { OperationFilter, OperationKind, OperationRequest } from "../../run/operations.ts";
import { icsWindow, readIcs } from "../../schedule/ics/ics.ts";
import { compareCalendar } from "../../slots/calendar-changes.ts";
import type { Store } from "../../store/store.ts";
import type { CalendarRecord } from "../../task/calendar-store.ts";
import type { Call, Some } from "../call.ts";
import type { Quotas } from "../quotas.ts";
import { changeOf } from "./changes.ts";
import { namedAfter, numberCursor, pageOf, readCursor, visiblePage } from "./pages.ts";

/** How far back errors are grouped if the caller does not say so. */
const errorsLookedBackMs = 7 * 86_400_000;
/** The number of equal intervals for which failures are counted. */
const trendParts = 24;

type Letters = Omit<Read<"listDeadLetters">, "cursor" | "limit">;
type Given = Letters &
  Partial<Record<"run", number | undefined>> & {
    states?: OperationFilter["states"] | undefined;
    labels?: Record<string, string> | undefined;
    all?: boolean | undefined;
  };

/**
 * Converts a filter of the API, limited to the namespaces in which the caller has the required role.
 * @throws ACCESS_DENIED, OPTION_INVALID
 */
const filterOf = ({ since, until, namespaces, run, label, ...named }: Given, reach: Reach): OperationFilter => ({
  ...named,
  ...narrowed(named.task, namespaces, reach),
  ...(run === undefined ? {} : { runId: run }),
  ...labelled(label),
  ...(since === undefined ? {} : { sinceMs: Date.parse(since) }),
  ...(until === undefined ? {} : { untilMs: Date.parse(until) }),
});

/** Parses labels of the form NAME=VALUE. @throws OPTION_INVALID */
function labelled(texts: readonly string[] | undefined): Pick<OperationFilter, "labels"> {
  const labels = texts && labelsOf({ labels: labelsOfTexts(texts) });
  return labels ? { labels } : {};
}

function narrowed(
  task: string | undefined,
  namespaces: readonly string[] | undefined,
  reach: Reach,
): Pick<OperationFilter, "namespaces"> {
  if (task !== undefined) reach.check(task);
  for (const namespace of namespaces ?? []) reach.check(`${namespace}/`);
  if (namespaces !== undefined) return { namespaces: [...namespaces] };
  return reach.namespaces === null || task !== undefined ? {} : { namespaces: [...reach.namespaces] };
}

/** True if the operation concerns only namespaces within `reach`. */
export const isWithin = ({ task, namespaces }: OperationFilter, reach: Reach): boolean =>
  reach.namespaces === null ||
  (task !== undefined ? reach.has(task) : (namespaces?.every((one) => reach.has(`${one}/`)) ?? false));

/** Converts the request of an operation. @throws ACCESS_DENIED, OPTION_INVALID */
export function requestOf(
  { kind, filter, range, pauseUntil }: Pick<Read<"previewOperation">, "kind" | "filter" | "range" | "pauseUntil">,
  call: Call,
  reason?: string,
): OperationRequest {
  const { author, reason: why } = changeOf(call, reason);
  const until = pauseUntil === undefined ? {} : { pauseUntilMs: Date.parse(pauseUntil) };
  const request = { kind, filter: filterOf(filter, call.reach), ...until, author, reason: why };
  if (!range) return request;
  const { from, to, perSecond = null, reverse = false, missed = false } = range;
  const toMs = to === undefined ? Math.floor(call.nowMs) : Date.parse(to);
  return { ...request, range: { fromMs: Date.parse(from), toMs, perSecond, reverse, missed } };
}

const shown = 10;

const makeRuns: readonly OperationKind[] = ["rerun", "redrive", "backfill"];
/** A backfill with a rate creates its runs 2 s before they start, so at most the runs of two seconds wait at once. */
const pacedSeconds = 2;

export function operationCalls(store: Store, quotas: Quotas): Some<keyof typeof operationRoutes> {
  /**
   * Counts the runs that an operation will create against the quotas, when the operation begins. An operation in all namespaces counts only
   * against its user's quota.
   */
  const take = (request: OperationRequest, { who, nowMs }: Call) =>
    quotas.takeCounted(who?.user ?? "", () => {
      const { filter, range } = request;
      const namespaces = filter.task === undefined ? (filter.namespaces ?? [null]) : [namespaceOf(filter.task)];
      const rate = range?.perSecond ?? null;
      const atMost = (runs: number, seconds: number) =>
        rate === null ? runs : Math.min(runs, Math.ceil(rate * seconds));
      return Promise.all(
        namespaces.map(async (namespace) => {
          const narrow = filter.namespaces && namespace !== null ? { ...filter, namespaces: [namespace] } : filter;
          const { total } = await store.operations.preview({ ...request, filter: narrow }, nowMs, 0);
          return { namespace, runs: atMost(total, pacedSeconds), aMinute: atMost(total, 60), bytes: 0 };
        }),
      );
    });
  return {
    listOperations: ({ cursor, limit }, { reach }) =>
      visiblePage(
        { limit, start: numberCursor(cursor), everything: reach.namespaces === null },
        (from, most) => store.browse.operations(from, most),
        ({ filter }) => isWithin(filter, reach),
        { item: operationObject, after: ({ operationId }) => operationId, cursor: (operationId) => [operationId] },
      ),
    getOperation: async ({ operation }) => operationObject(await store.operations.find(operation)),
    previewOperation: (given, call) => store.operations.preview(requestOf(given, call), call.nowMs, shown),
    async beginOperation({ reason, ...given }, call) {
      const request = requestOf(given, call, reason);
      if (makeRuns.includes(request.kind)) await take(request, call);
      const id = await store.operations.begin(request, call.token, call.nowMs);
      return operationObject(await store.operations.find(id));
    },
    async stopOperation({ operation }, call) {
      await store.operations.stop(operation, call.nowMs, changeOf(call, undefined));
      return operationObject(await store.operations.find(operation));
    },
    async listDeadGroups(given, { reach }) {
      const { groups, total } = await store.deadLetters.groups(filterOf(given, reach));
      return { groups: groups.map(failureGroupObject), total };
    },
    async listErrors({ task, since }, { nowMs, reach }) {
      if (task !== undefined) reach.check(task);
      const taskId = task === undefined ? null : await store.tasks.idOf(task);
      const sinceMs = since === undefined ? nowMs - errorsLookedBackMs : Date.parse(since);
      const namespaces = taskId === null ? reach.namespaces : null;
      const which = { taskId, namespaces, sinceMs, limit: limits.failuresRead };
      const { failures, allSinceMs: fromMs } = await store.deadLetters.failures(which);
      const groups = failureGroups(failures, { fromMs, toMs: nowMs, parts: trendParts });
      const listed = groups.slice(0, limits.failureGroups);
      const reasons = await store.deadLetters.reasons(listed.map(({ lastRunId }) => lastRunId));
      return {
        from: isoTime(fromMs),
        groups: listed.map(({ tasks, ...group }) => ({
          ...failureGroupObject(group),
          reason: reasons.get(group.lastRunId) ?? null,
          tasks: tasks.slice(0, limits.deadGroupTasks),
          taskCount: tasks.length,
        })),
        groupCount: groups.length,
      };
    },
    async listDeadLetters({ cursor, limit, ...given }, { reach }) {
      const place = readCursor(cursor, ["number", "number"]);
      const before = place && { endedMs: place[0] as number, runId: place[1] as number };
      const rows = await store.browse.letters(filterOf(given, reach), before, limit + 1);
      const item = ({ runId, task, endedMs, fingerprint }: (typeof rows)[number]) => ({
        run: runId,
        task,
        ended: isoTime(endedMs),
        fingerprint,
      });
      return pageOf(rows, limit, item, ({ endedMs, runId }) => [endedMs, runId]);
    },
  };
}

const asCalendar = ({ changedMs, names, ...rest }: CalendarRecord) => ({
  ...rest,
  names: { ...names },
  changed: isoTime(changedMs),
});

/** Converts a calendar; its list of tasks contains only those that the caller may view. */
const shownTo = (reach: Reach) => (record: CalendarRecord) =>
  asCalendar({ ...record, tasks: record.tasks.filter((task) => reach.has(task)) });

/** Converts the content of a calendar, which may include an iCalendar text. @throws CALENDAR_INVALID */
function contentOf({ zone, weekend, holidays, ics, strict }: Omit<Read<"compareCalendar">, "calendar">, nowMs: number) {
  const { days, names, notices } =
    ics === undefined
      ? { days: [], names: new Map<string, string>(), notices: [] }
      : readIcs(ics, icsWindow(nowMs, zone), strict);
  return { content: { zone, weekend, holidays: [...holidays, ...days] }, names, notices };
}

export function calendarCalls(store: Store, clock: Clock): Some<keyof typeof calendarRoutes> {
  return {
    async listCalendars({ cursor, limit }, { reach }) {
      const rows = namedAfter(await store.calendars.list(), cursor).filter(({ name }) => reach.has(name));
      return pageOf(rows, limit, shownTo(reach), ({ name }) => [name]);
    },
    getCalendar: async ({ calendar, version }, { reach }) =>
      shownTo(reach)(await store.calendars.find(calendar, version)),
    async setCalendar({ calendar, allowShrink = false, reason, names: called, ...given }, call) {
      const { content, names, notices } = contentOf(given, call.nowMs);
      const named = { ...content, names: { ...called, ...Object.fromEntries(names) } };
      await store.calendars.set(calendar, named, changeOf(call, reason), call.ifVersion, allowShrink);
      return { ...shownTo(call.reach)(await store.calendars.find(calendar)), notices };
    },
    async compareCalendar({ calendar, ...given }, { nowMs, reach }) {
      const { content, names, notices } = contentOf(given, nowMs);
      const sees = (task: string) => reach.has(task);
      const compared = await compareCalendar(store, calendar, content, { nowMs, clock, sees });
      return { ...comparisonObject(compared, names, nowMs), notices };
    },
    async removeCalendar({ calendar, reason }, call) {
      await store.calendars.remove(calendar, changeOf(call, reason), (task) => call.reach.has(task));
      return undefined;
    },
  };
}
