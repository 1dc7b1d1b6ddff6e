import type { AlarmRecord, AlarmStore, OutboxRow, OutboxTry, Silence } from "../../../alarms/alarm-store.ts";
import { type AlarmMessage, silenceUnknown, testMessage } from "../../../alarms/alarms.ts";
import type { Change, SqlClient } from "../../../base/change.ts";
import { CarillonError } from "../../../base/errors.ts";
import type { Json } from "../../../base/json.ts";
import { audited } from "../access/audit.ts";
import type { Database } from "../database.ts";
import { checkTask } from "../tasks/read.ts";
import { checkRuleThere } from "./rule-store.ts";

/** SQL condition: an active silence covers the rule and the subject. `rule`, `subject` and `now` are SQL expressions. */
export const silencedSql = (s: string, rule: string, subject: string, now: string): string =>
  `exists (select from ${s}.alarm_silence z where z.ended_ms is null and z.from_ms <= ${now}::bigint and z.until_ms > ${now}::bigint
           and coalesce(z.rule, ${rule}) = ${rule} and coalesce(z.subject, ${subject}) = ${subject})`;

type Said = Pick<AlarmStore, "open" | "outbox" | "message" | "test" | "see" | "silence" | "unsilence" | "silences">;

/** The part of the alarm store that operators use: reads, acknowledges and silences alarms, reads their messages, sends test messages. */
export function saidStore(database: Database): Said {
  const s = database.schema;
  const silenceFields = `id as "silenceId", rule, subject as task, from_ms as "fromMs", until_ms as "untilMs", author, reason`;
  const rowFields = `id, channel, attempts, rule, kind, created_ms::float8 as "createdMs", sent_ms::float8 as "sentMs", error,
    case when sent_ms is null then next_ms::float8 end as "nextMs"`;

  const put = (client: SqlClient, act: string, named: string, after: Json, { author, reason, nowMs }: Change) =>
    audited(client, s, { atMs: nowMs, who: author, act, about: "alarm", named, before: null, after, why: reason });

  return {
    async open(nowMs = 0) {
      const rows = await database.query<AlarmRecord & { seenMs: number | null; seenBy: string; seenWhy: string }>(
        "alarm-open",
        `select a.rule, a.subject, a.opened_ms::float8 as "openedMs", a.last_ms::float8 as "lastMs", a.count::float8 as count, a.text,
                a.run_id::float8 as "runId", a.seen_ms::float8 as "seenMs", a.seen_by as "seenBy", a.seen_why as "seenWhy",
                (select max(z.until_ms) from ${s}.alarm_silence z where z.ended_ms is null and z.from_ms <= $1 and z.until_ms > $1
                   and coalesce(z.rule, a.rule) = a.rule and coalesce(z.subject, a.subject) = a.subject)::float8 as "silencedUntilMs"
         from ${s}.alarm a where a.cleared_ms is null order by a.opened_ms desc, a.rule, a.subject`,
        [Math.round(nowMs)],
      );
      return rows.map(({ seenMs, seenBy, seenWhy, ...row }) => ({
        ...row,
        seen: seenMs === null ? null : { atMs: seenMs, by: seenBy, why: seenWhy },
      }));
    },

    outbox: (limit, beforeId = Number.MAX_SAFE_INTEGER) =>
      database.query<OutboxRow>(
        "alarm-outbox",
        `select ${rowFields} from ${s}.alarm_outbox where id < $2 order by id desc limit $1`,
        [limit, beforeId],
      ),

    async message(id) {
      const [row] = await database.query<OutboxRow & { message: AlarmMessage }>(
        "alarm-message",
        `select ${rowFields}, body as message from ${s}.alarm_outbox where id = $1`,
        [id],
      );
      if (!row) throw unknown(`there is no message ${id}`, "What was sent is kept for a week.");
      const tries = await database.query<OutboxTry>(
        "alarm-tries",
        `select attempt, at_ms as "atMs", node, error from ${s}.alarm_try where message_id = $1 order by attempt`,
        [id],
      );
      return { ...row, tries };
    },

    test: (channel, change) =>
      database.transaction(async (client) => {
        const now = Math.round(change.nowMs);
        const { rows } = await client.query(
          `insert into ${s}.alarm_outbox (channel, rule, kind, body, created_ms, next_ms) values ($1, 'test', 'test', $2, $3, $3) returning id`,
          [channel, JSON.stringify(testMessage(change.author, now)), now],
        );
        const id = Number(rows[0]?.id);
        await put(client, "test", channel, { message: id }, change);
        return id;
      }),

    see: (rule, task, change) =>
      database.transaction(async (client) => {
        const { rows } = await client.query(
          `update ${s}.alarm set seen_ms = $3, seen_by = $4, seen_why = $5
           where rule = $1 and cleared_ms is null and subject = coalesce($2, subject) returning subject`,
          [rule, task, Math.round(change.nowMs), change.author, change.reason],
        );
        if (rows.length === 0)
          throw unknown(`no alarm ${rule} is open${task === null ? "" : ` for ${task}`}`, "See `carillon alarms`.");
        const subjects = rows.slice(0, 100).map(({ subject }) => String(subject));
        await put(client, "acknowledge", rule, { alarms: rows.length, tasks: subjects }, change);
        return rows.length;
      }),

    silence: ({ rule, task, untilMs }, change) =>
      database.transaction(async (client) => {
        if (task !== null) await checkTask(client, s, task);
        if (rule !== null) await checkRuleThere(client, s, rule);
        const { rows } = await client.query(
          `insert into ${s}.alarm_silence (rule, subject, from_ms, until_ms, author, reason) values ($1, $2, $3, $4, $5, $6)
           returning ${silenceFields}`,
          [rule, task, Math.round(change.nowMs), Math.round(untilMs), change.author, change.reason],
        );
        const made = rows[0] as unknown as Silence;
        await put(
          client,
          "silence",
          String(made.silenceId),
          { rule, task, until: new Date(untilMs).toISOString() },
          change,
        );
        return made;
      }),

    unsilence: (silenceId, change) =>
      database.transaction(async (client) => {
        const { rows } = await client.query(
          `update ${s}.alarm_silence set ended_ms = $2 where id = $1 and ended_ms is null and until_ms > $2 returning id`,
          [silenceId, Math.round(change.nowMs)],
        );
        if (rows.length === 0) throw silenceUnknown(silenceId);
        await put(client, "unsilence", String(silenceId), null, change);
      }),

    silences: (nowMs) =>
      database.query<Silence>(
        "alarm-silences",
        `select ${silenceFields} from ${s}.alarm_silence where ended_ms is null and until_ms > $1 order by id desc limit 1000`,
        [Math.round(nowMs)],
      ),
  };
}

const unknown = (what: string, hint: string) => new CarillonError("ALARM_UNKNOWN", what, { hint });
