import type { LogLine } from "../../../run/run-record.ts";
import type { LogLook, LogPlace, LogRead, PlacedLine } from "../../browse-store.ts";
import type { Database } from "../database.ts";

const levels = ["debug", "info", "warn", "error"] as const;
/** The positions before the first and after the last line of any log. */
const firstPlace = { atMs: 0, lies: "(0,0)" };
const lastPlace = { atMs: Number.MAX_SAFE_INTEGER, lies: "(4294967295,65535)" };

type LineRow = Omit<LogLine, "level"> & { level: number; lies: string };

/** A line together with the snapshot of the read; if there are no lines, one row has only the snapshot. */
type Snapped = { snapshot: string } & (LineRow | { runId: null });

const lineFields = `run_id as "runId", attempt, at_ms as "atMs", level, message, fields, ctid as "liesAt"`;
const snappedFields = `n.snapshot, l."runId", l.attempt, l."atMs", l.level, l.message, l.fields, l."liesAt"::text as lies`;

export async function browseLogs(
  database: Database,
  runId: number,
  beside: LogPlace | null,
  limit: number,
  { newest = false, level, attempt, find }: LogLook = {},
): Promise<{ lines: PlacedLine[]; seen: string }> {
  const s = database.schema;
  // Lines are only inserted, and all lines of one time are in one partition, so time and location (ctid) identify a line permanently. Texts
  // are lower-cased by the collation "C", because with the database's own collation a search of a million lines took seconds.
  const [ahead, order, none] = newest ? ["<", "desc", lastPlace] : [">", "asc", firstPlace];
  const has = (text: string) => `strpos(lower(${text} collate "C"), lower($6 collate "C")) > 0`;
  const { atMs, lies } = beside ?? none;
  const rows = await database.query<Snapped>(
    `browse-logs-${order}${level === undefined ? "" : "-level"}${find === undefined ? "" : "-find"}${attempt === undefined ? "" : "-attempt"}`,
    `select ${snappedFields} from (select pg_current_snapshot()::text as snapshot) n left join (
       select ${lineFields}
       from ${s}.run_log where run_id = $1 and at_ms ${ahead}= $2 and (at_ms, ctid) ${ahead} ($2, $3::tid)
         and ($5::smallint is null ${level === undefined ? "or true" : "or level >= $5"})
         and ($6::text is null ${find === undefined ? "or true" : `or ${has("message")} or ${has("fields::text")}`})
         ${attempt === undefined ? "" : "and attempt = $7"}
       order by at_ms ${order}, ctid ${order} limit $4) l on true
     order by l."atMs" ${order}, l."liesAt" ${order}`,
    [
      ...[runId, atMs, lies, limit, level === undefined ? null : levels.indexOf(level), find ?? null],
      ...(attempt === undefined ? [] : [attempt]),
    ],
  );
  const { lines, snapshot } = placed(rows);
  return { lines, seen: snapshot };
}

/**
 * Returns the lines that the earlier snapshot `seen` does not contain; all lines if it is null. Such a line was committed later, even if
 * its time is earlier. The few new lines are selected first, because a read in the order of time would go through the whole log.
 */
export async function arrivedLogs(
  database: Database,
  runId: number,
  { seen, reading, place }: LogRead,
  limit: number,
): Promise<{ lines: PlacedLine[]; reading: string }> {
  const s = database.schema;
  const since = `and xid >= pg_snapshot_xmin($6::pg_snapshot) and not pg_visible_in_snapshot(xid, $6::pg_snapshot)`;
  const rest = `at_ms >= $2 and (at_ms, ctid) > ($2, $3::tid) and (xid is null or pg_visible_in_snapshot(xid, snap))
    order by at_ms, ctid limit $4`;
  const lines =
    seen === null
      ? `select ${lineFields} from ${s}.run_log where run_id = $1 and ${rest}`
      : `with late as materialized (select *, ctid from ${s}.run_log where run_id = $1 ${since})
         select ${lineFields} from late where ${rest}`;
  const { atMs, lies } = place ?? firstPlace;
  const rows = await database.query<Snapped>(
    `arrived-logs-${seen === null ? "all" : "since"}`,
    `select ${snappedFields}
     from (select snap, snap::text as snapshot from (select coalesce($5::pg_snapshot, pg_current_snapshot()) as snap) c) n
     left join lateral (${lines}) l on true
     order by l."atMs", l."liesAt"`,
    [runId, atMs, lies, limit, reading, ...(seen === null ? [] : [seen])],
  );
  const { lines: found, snapshot } = placed(rows);
  return { lines: found, reading: snapshot };
}

function placed(rows: Snapped[]): { lines: PlacedLine[]; snapshot: string } {
  const lines = rows.flatMap((row) => {
    if (row.runId === null) return [];
    const { snapshot: _, ...line } = row;
    return [{ ...line, level: levels[line.level] ?? ("info" as const) }];
  });
  return { lines, snapshot: rows[0]?.snapshot ?? "" };
}
