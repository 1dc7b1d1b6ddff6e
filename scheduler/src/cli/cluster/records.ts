/** Converts answers of the HTTP API back to the store's records: the inverse of the *-json.ts files in api/. */

import type { SecretRecord } from "../../access/secrets/secret-store.ts";
import type { AlarmRecord, OutboxRow, Silence } from "../../alarms/alarm-store.ts";
import type { Answer } from "../../api/contract.ts";
import type { Json } from "../../base/json.ts";
import type { Member, Term } from "../../cluster/session-store.ts";
import { overridesOf, type RunPolicies } from "../../run/enqueue-options.ts";
import type { LateResult, Relative } from "../../run/flow.ts";
import type { OperationFilter, OperationRecord } from "../../run/operations.ts";
import type { AttemptRecord, LogLine, RunRecord } from "../../run/run-record.ts";
import type { Calendar } from "../../schedule/calendar.ts";
import type { CalendarRecord } from "../../task/calendar-store.ts";
import type { TaskDefinition } from "../../task/task.ts";
import type { ReleaseOfTask, TaskRecord, VersionRecord } from "../../task/task-record.ts";
import type { RunCard } from "../nodes/cluster.ts";

type Item<Page extends { items: unknown[] }> = Page["items"][number];

/** Converts a time in an answer to epoch ms; null stays null. */
export const ms = (time: string | null): number | null => (time === null ? null : Date.parse(time));

export function taskRecord(task: Answer<"getTask">, calendar: Calendar | undefined): TaskRecord {
  return {
    taskId: task.id,
    name: task.name,
    version: task.version,
    definition: task.definition as unknown as TaskDefinition,
    // The API does not return the group's number; no command needs it, because the definition contains the group's name.
    groupId: 0,
    paused: task.paused && {
      atMs: Date.parse(task.paused.at),
      by: task.paused.by,
      why: task.paused.why,
      untilMs: task.paused.until === null ? null : Date.parse(task.paused.until),
    },
    changedMs: Date.parse(task.changed),
    nextSlotMs: ms(task.next),
    ...(calendar === undefined ? {} : { calendar }),
    ...(task.accounted.length === 0 ? {} : { accountedMs: task.accounted.map((time) => Date.parse(time)) }),
    ...(task.bundle === null ? {} : { bundle: task.bundle }),
  };
}

export const releaseRecord = ({
  release,
  number,
  inForce,
  first,
  seen,
  processes,
}: Answer<"listTaskReleases">["releases"][number]): ReleaseOfTask => ({
  name: release,
  number,
  isInForce: inForce,
  firstMs: Date.parse(first),
  seenMs: Date.parse(seen),
  nodes: processes,
});

export const versionRecord = ({ changed, definition, ...rest }: Item<Answer<"listTaskVersions">>): VersionRecord => ({
  ...rest,
  definition: definition as unknown as TaskDefinition,
  changedMs: Date.parse(changed),
});

/** @param whole the fields that lists omit */
export function runRecord(
  run: Item<Answer<"listRuns">>,
  whole: { payload: unknown; progress: unknown; result: unknown } = { payload: null, progress: null, result: null },
): RunRecord {
  return {
    runId: run.run,
    task: run.task,
    taskId: 0,
    version: run.version,
    state: run.state,
    source: run.source,
    priority: run.priority,
    key: run.key,
    slotMs: ms(run.slot),
    dueMs: Date.parse(run.due),
    readyMs: run.ownWaitMs ? Date.parse(run.due) + run.ownWaitMs : null,
    createdMs: Date.parse(run.created),
    claimedMs: ms(run.claimed),
    startedMs: ms(run.started),
    endedMs: ms(run.ended),
    attempt: run.attempt,
    fence: run.fence,
    node: run.node,
    release: run.release,
    addressee: run.addressee,
    limitKey: run.limitKey,
    overrides: run.overrides && overridesOf(run.overrides as RunPolicies),
    expiresMs: ms(run.expires),
    labels: run.labels,
    shard: run.shard && [run.shard.index, run.shard.total],
    payload: whole.payload as Json,
    progress: whole.progress as Json,
    result: whole.result as Json,
    error: run.error as Json,
  };
}

export function runCard({ attempts, relatives, late, letter, redrives, ...run }: Answer<"getRun">): RunCard {
  return {
    run: runRecord(run, run),
    attempts: attempts.map(
      ({ claimed, started, ended, error, ...rest }): AttemptRecord => ({
        ...rest,
        claimedMs: ms(claimed),
        startedMs: ms(started),
        endedMs: Date.parse(ended),
        error: error as Json,
      }),
    ),
    relatives: relatives.map(({ run: runId, ...rest }): Relative => ({ runId, ...rest })),
    late: late.map(({ at, ...rest }) => ({ ...rest, atMs: Date.parse(at) }) as LateResult),
    letter,
    redrives,
  };
}

export const logLine = (runId: number, { id: _, at, fields, ...rest }: Item<Answer<"listLogs">>): LogLine => ({
  runId,
  atMs: Date.parse(at),
  fields: fields as Json,
  ...rest,
});

export function operationRecord({
  operation,
  created,
  started,
  ended,
  filter,
  range,
  pauseUntil,
  ...rest
}: Answer<"getOperation">): OperationRecord {
  const { since, until, ...named } = filter;
  return {
    operationId: operation,
    ...rest,
    filter: {
      ...named,
      ...(since === undefined ? {} : { sinceMs: Date.parse(since) }),
      ...(until === undefined ? {} : { untilMs: Date.parse(until) }),
    } as OperationFilter,
    ...(range === undefined ? {} : { range: rangeRecord(range) }),
    ...(pauseUntil === undefined ? {} : { pauseUntilMs: Date.parse(pauseUntil) }),
    createdMs: Date.parse(created),
    startedMs: ms(started),
    endedMs: ms(ended),
  };
}

const rangeRecord = ({ from, to, ...rest }: NonNullable<Answer<"getOperation">["range"]>) => ({
  ...rest,
  fromMs: Date.parse(from),
  toMs: Date.parse(to),
});

export const calendarRecord = ({ changed, ...rest }: Answer<"getCalendar">): CalendarRecord => ({
  ...rest,
  changedMs: Date.parse(changed),
});

type ApiMember = Omit<Item<Answer<"listNodes">>, "leads">;

export const memberRecord = (member: ApiMember): Member => {
  const { sessionId, node, role, host, pid, version, timeoutMs, groups, labels, capacity, settings, tasks } = member;
  return {
    sessionId,
    node,
    role,
    host,
    pid,
    version,
    timeoutMs,
    groups,
    labels,
    capacity,
    tasks,
    settings: settings as Member["settings"] & object,
    // The API does not return the number of heartbeats; no command reads it.
    beat: 0,
    witnessed: member.reliesOn === "service",
    startedMs: Date.parse(member.started),
    seenMs: Date.parse(member.seen),
    stillMs: member.stillMs ?? null,
    draining: member.draining,
  };
};

export const termRecord = ({ elected, ended, ...rest }: Item<Answer<"listTerms">>): Term => ({
  ...rest,
  electedMs: Date.parse(elected),
  endedMs: ms(ended),
});

export const alarmRecord = ({
  task,
  opened,
  last,
  run,
  acknowledged,
  silencedUntil,
  ...rest
}: Item<Answer<"listAlarms">>): AlarmRecord => ({
  ...rest,
  subject: task ?? "",
  openedMs: Date.parse(opened),
  lastMs: Date.parse(last),
  runId: run,
  seen: acknowledged && { atMs: Date.parse(acknowledged.at), by: acknowledged.by, why: acknowledged.why },
  silencedUntilMs: ms(silencedUntil),
});

export const outboxRow = ({
  message,
  created,
  sent,
  next,
  state: _,
  ...rest
}: Item<Answer<"listAlarmMessages">>): OutboxRow => ({
  ...rest,
  id: message,
  createdMs: Date.parse(created),
  sentMs: ms(sent),
  nextMs: ms(next),
});

export const silenceRecord = ({ silence, from, until, by, ...rest }: Answer<"silenceAlarms">): Silence => ({
  ...rest,
  silenceId: silence,
  fromMs: Date.parse(from),
  untilMs: Date.parse(until),
  author: by,
});

export const secretRecord = ({ key, changed, ...rest }: Answer<"setSecret">): SecretRecord => ({
  ...rest,
  keyId: key,
  changedMs: Date.parse(changed),
});
