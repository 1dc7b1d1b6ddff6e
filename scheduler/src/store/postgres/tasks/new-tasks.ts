import type { Change } from "../../../base/change.ts";
import { compileSchedule } from "../../../schedule/schedule.ts";
import { inZones } from "../../../schedule/zone-rules.ts";
import { isPaced } from "../../../task/policies.ts";
import { codeOfText } from "../../../task/release.ts";
import { definitionText, type TaskDefinition } from "../../../task/task.ts";
import type { TaskRecord } from "../../../task/task-record.ts";
import { gates } from "../claims/gates.ts";
import { notifySql } from "../cluster/signals.ts";
import { numbers } from "../columns.ts";
import { recordChangesSql, taskKindSql } from "../events/recording.ts";
import type { Query } from "../query.ts";
import type { KnownZones } from "../zones/known-zones.ts";

/** Returns the values of `task.gate` and `task.gate_limit`; the limit is null if the number of concurrent runs has no limit. */
export function gateOf({ overlap: { policy, limit, waiting }, ...parts }: TaskDefinition): {
  gate: number;
  limit: number | null;
} {
  if (isPaced(parts)) return { gate: gates.paced, limit };
  if (waiting !== undefined) return { gate: gates.bounded, limit };
  return { gate: limit === null ? gates.allow : gates[policy], limit };
}

/** Returns, for a task that plans from a run's end, the time from that end to the next slot in ms; null for other tasks. */
export function afterEndOf({ schedule }: Pick<TaskDefinition, "schedule">): number | null {
  return schedule.type === "every" && schedule.mode === "delay" ? schedule.everyMs : null;
}

/** SQL: a text column that is sent as one text of lines, because pg would quote each text of an array. No value contains a line break. */
const lines = (parameter: string) => `string_to_array(${parameter}::text, e'\\n')`;

/**
 * Creates, in one statement, those tasks whose names the store has never had: their first version with everything that belongs to it. New
 * tasks have no planned runs to withdraw, and no runs that wait for a slot. Rows are inserted in the order of their names, so that nodes
 * that start at the same time with the same definitions cannot deadlock.
 * @returns the tasks that were created; other names belong to removed tasks, or another node has created them
 */
export async function createTasks(
  { query, s }: { query: Query; s: string },
  definitions: TaskDefinition[],
  {
    groupIdOf,
    change,
    releaseId,
    schedulesOf,
    zones: known,
    isLast,
  }: {
    groupIdOf: (definition: TaskDefinition) => number;
    change: Change;
    /** The number of the release that contains the definitions; null if they do not come from a release. */
    releaseId: number | null;
    /** Set if the tasks are schedules: the name of their task, and the version of it from which they are made. */
    schedulesOf?: { name: string; version: number };
    /** The cache of zones, after a call of its `enter` for these tasks. */
    zones: KnownZones;
    /** False if the transaction goes on after this statement: a lock on the chain of the audit log would then last until the commit. */
    isLast: boolean;
  },
): Promise<TaskRecord[]> {
  const now = Math.round(change.nowMs);
  const zonesVersion = known.version;
  const zones = known.at(zonesVersion);
  const news = definitions
    .map((definition) => ({
      definition,
      text: definitionText(definition),
      ...gateOf(definition),
      groupId: groupIdOf(definition),
      nextSlotMs: compileSchedule(inZones(definition, zones).schedule).next(change.nowMs),
    }))
    .sort((a, b) => (a.definition.name < b.definition.name ? -1 : 1));
  const rows = await query<{ id: number; name: string; version: number }>(
    "task-create",
    `with given as (
       select * from unnest(${lines("$1")}, $2::int[], ${lines("$3")}, $4::smallint[], $5::int[], $6::bigint[], $7::bigint[], $16::int[], ${lines("$11")})
         with ordinality as g (name, group_id, text, gate, gate_limit, next_slot_ms, after_end_ms, at_end, code, n)),
     made as (
       insert into ${s}.task (name, version, group_id, definition, definition_text, gate, gate_limit, created_ms, changed_ms,
         code, code_version, of_name, of_version)
       select name, v.version, group_id, text::jsonb, text, gate, gate_limit, $8, $8, code, v.version, $14::text, $15::int
       from given, (select ${s}.next_version(0) as version offset 0) v order by n
       on conflict (name) do nothing returning id, name, version, definition),
     versions as (
       insert into ${s}.task_version (task_id, version, definition, author, reason, changed_ms)
       select id, version, definition, $9, $10, $8 from made),
     codes as (
       insert into ${s}.task_code (task_id, release_id, code, definition_text)
       select id, $12::int, code, text from made join given using (name) where $12::int is not null),
     plans as (
       insert into ${s}.plan (task_id, version, next_slot_ms, after_end_ms, at_end, zones_version)
       select id, version, next_slot_ms, after_end_ms, at_end is not null, $13 from made join given using (name)),
     places as (
       insert into ${s}.gate (task_id) select id from made join given using (name) where gate > 0),
     put_down as (
       select entry_id as id, $8::bigint as at_ms, 'create' as act, entry_name as named, $9::text as who, $10::text as why
       from (select array_agg(name order by name) as names, array_agg(definition order by name) as definitions from made) m,
         ${s}.audit_created($8, $9, $10, m.names, m.definitions, $17)),
     recorded as (
       ${recordChangesSql(s, "put_down e join made m on m.name = e.named", {
         kind: taskKindSql("$14::text"),
         task: "m.id",
         before: "null::int",
         after: "m.version",
       })}),
     told as (
       select ${notifySql(s, "'tasks'")} where exists (select from put_down))
     select id, name, version from made left join told on true`,
    [
      news.map(({ definition }) => definition.name).join("\n"),
      numbers(news.map(({ groupId }) => groupId)),
      news.map(({ text }) => text).join("\n"),
      numbers(news.map(({ gate }) => gate)),
      numbers(news.map(({ limit }) => limit)),
      numbers(news.map(({ nextSlotMs }) => (nextSlotMs === null ? null : Math.round(nextSlotMs)))),
      numbers(news.map(({ definition }) => afterEndOf(definition))),
      now,
      change.author,
      change.reason,
      news.map(({ text }) => codeOfText(text)).join("\n"),
      releaseId,
      zonesVersion,
      schedulesOf?.name ?? null,
      schedulesOf?.version ?? null,
      numbers(news.map(({ definition }) => (definition.atEnd === undefined ? null : 1))),
      isLast,
    ],
  );
  const byName = new Map(news.map((one) => [one.definition.name, one]));
  return rows.map(({ id, name, version }) => {
    const { definition, groupId, nextSlotMs } = byName.get(name) as (typeof news)[number];
    const record = { taskId: id, name, version, definition, groupId, paused: null, changedMs: now, nextSlotMs };
    return { ...record, ...known.of(definition, undefined, zonesVersion) };
  });
}
