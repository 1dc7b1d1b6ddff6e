import { limits } from "../../../base/limits.ts";
import type { LogLine } from "../../../run/run-record.ts";
import type { RunStore } from "../../../run/run-store.ts";
import type { Database } from "../database.ts";

const levels = ["debug", "info", "warn", "error"] as const;

/**
 * SQL: selects the lines in `i` whose run and fence belong or belonged to a claim of this session, or of an earlier session of its worker.
 */
const claimedBySql = (s: string, session: string) => `
  where exists (
    select from (
      select session_id from ${s}.run where id = i.id and fence = i.fence
      union all select session_id from ${s}.run_history where id = i.id and fence = i.fence
      union all select session_id from ${s}.attempt where run_id = i.id and fence = i.fence) c
    join ${s}.session o on o.id = c.session_id
    join ${s}.session me on me.id = ${session} and (me.id = o.id or me.key_id = o.key_id and me.node = o.node))`;

const givenLines = `unnest($1::bigint[], $2::int[], $3::bigint[], $4::smallint[], $5::text[], $6::jsonb[], $7::bigint[])
  i (id, attempt, at_ms, level, message, fields, fence)`;

export function logStore(database: Database): Pick<RunStore, "logs" | "writeLogs"> {
  const s = database.schema;
  return {
    async logs(runId, limit): Promise<LogLine[]> {
      const rows = await database.query<Omit<LogLine, "level"> & { level: number }>(
        "run-logs",
        `select run_id as "runId", attempt, at_ms as "atMs", level, message, fields from ${s}.run_log where run_id = $1 order by at_ms limit $2`,
        [runId, limit],
      );
      return rows.map((row) => ({ ...row, level: levels[row.level] ?? "info" }));
    },

    async writeLogs(lines, nowMs, sessionId) {
      const ofSession = sessionId !== undefined;
      const into = `insert into ${s}.run_log (run_id, attempt, at_ms, level, message, fields)
        select id, attempt, at_ms, level, message, fields from`;
      const kept = await database.query<{ id: number; fence: number }>(
        `run-write-logs-${ofSession}`,
        ofSession
          ? `with kept as (select i.* from ${givenLines} ${claimedBySql(s, "$8")}), written as (${into} kept) select distinct id, fence from kept`
          : `${into} ${givenLines}`,
        [
          lines.map(({ runId }) => runId),
          lines.map(({ attempt }) => attempt),
          lines.map(({ atMs }) => Math.round(Math.max(atMs, nowMs - limits.writtenAgoMs))),
          lines.map(({ level }) => levels.indexOf(level)),
          lines.map(({ message }) => message.replaceAll("\0", "�")),
          lines.map(({ fields }) => (fields === null ? null : JSON.stringify(fields))),
          lines.map(({ fence }) => fence ?? null),
          ...(ofSession ? [sessionId] : []),
        ],
      );
      if (!ofSession) return [];
      const claims = new Set(kept.map(({ id, fence }) => `${id} ${fence}`));
      return lines.filter(({ runId, fence }) => !claims.has(`${runId} ${fence}`));
    },
  };
}
