import { CarillonError } from "../../../base/errors.ts";
import type { InputsPage, RunInput } from "../../../run/flow.ts";
import { outcomes } from "../../../run/run.ts";
import type { Database } from "../database.ts";
import { sourceNumber, sourceOf } from "../enqueue/sources.ts";
import { runState } from "../states.ts";
import { childrenSql } from "./spawn.ts";

const child = sourceNumber("child");

const inputFields = `h.id as "runId", t.name as task, case when h.source = ${child} then substr(h.key, strpos(h.key, '/') + 1) end as key,
  h.slot_ms as "slotMs", h.outcome, h.result, h.error`;

/** SQL: a page of inputs. Without a page, $3 is null, which means no limit, and the sizes of the results are not computed. */
const pageSql = (s: string, ended: string) => `
  select ${inputFields}, h.found from (
    select h.*, sum(case when $4::bigint > 0 then coalesce(octet_length(h.result::text), 0) + coalesce(octet_length(h.error::text), 0) end)
                  over (order by h.id) as bytes, row_number() over (order by h.id) as place, count(*) over () as found
    from (select h.* from ${ended} order by h.id limit $3::bigint) h) h
  join ${s}.task t on t.id = h.task_id where h.bytes is null or h.bytes <= $4 or h.place = 1 order by h.id`;

/**
 * Returns the runs that a run follows, continues or joins; none if the run does not exist.
 * @param page null to return all of them
 * @throws FENCE_STALE if `fence` is given and the run is not claimed with it
 */
export async function readInputs(
  database: Database,
  { runId, fence }: { runId: number; fence?: number },
  page: InputsPage | null,
): Promise<{ inputs: RunInput[]; more: boolean }> {
  const s = database.schema;
  const [run] = await database.query<{ source: number; parent_id: number | null; inputs: number[] | null }>(
    "flow-run",
    `select source, parent_id, inputs from ${s}.run where id = $1 and ($2::bigint is null or fence = $2 and state = ${runState.claimed})
     union all select source, parent_id, inputs from ${s}.run_history where id = $1 and $2::bigint is null`,
    [runId, fence ?? null],
  );
  if (!run && fence !== undefined)
    throw new CarillonError("FENCE_STALE", `run ${runId} is no longer this worker's, so it is not told`);
  if (!run) return { inputs: [], more: false };
  const isJoin = sourceOf(run.source) === "join";
  const ids =
    run.inputs?.map(Number) ?? (run.parent_id === null || sourceOf(run.source) === "child" ? [] : [run.parent_id]);
  const rows = await database.query<Omit<RunInput, "outcome"> & { outcome: number; found: number }>(
    `flow-inputs-${isJoin}`,
    pageSql(
      s,
      isJoin
        ? `(${childrenSql(s, "$1")}) c join ${s}.run_history h on h.id = c.id and h.parent_id = $1 where h.id > $2`
        : `${s}.run_history h where h.id = any($1) and h.id > $2`,
    ),
    [isJoin ? run.parent_id : ids, page?.afterRunId ?? 0, page && page.limit + 1, page?.bytes ?? null],
  );
  const told = page ? rows.slice(0, page.limit) : rows;
  return {
    inputs: told.map(({ found: _, ...row }) => ({ ...row, outcome: outcomes[row.outcome] as RunInput["outcome"] })),
    more: (rows[0]?.found ?? 0) > told.length,
  };
}
