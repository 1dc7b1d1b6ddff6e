import type { Json } from "../../../base/json.ts";
import { limits } from "../../../base/limits.ts";
import type { Settlement } from "../../../run/claim-store.ts";
import type { DeadGroup, DeadLetter, DeadLetterStore } from "../../../run/dead-letters.ts";
import { fingerprintOfText, reasonOf } from "../../../run/error-fingerprint.ts";
import type { OperationFilter } from "../../../run/operations.ts";
import { finishSql, finishValues, leaveSql, leaveValues } from "../claims/settle.ts";
import type { Database } from "../database.ts";
import { letterState, letterStates, runOutcome } from "../states.ts";
import { failureReads } from "../statistics/failures.ts";
import { andLabelsSql, taskIdsSql, taskValues } from "../tasks/task-filter.ts";

type Ended = Settlement & { verdict: Extract<Settlement["verdict"], { kind: "ended" }> };

/**
 * True if the end needs no row in the history, because the task stores no history of successes. A run with a follow-up run is stored in any
 * case, because the follow-up run reads it. The statement also stores other runs whose rows are read, such as children.
 */
export const isUnkept = ({ unkept, verdict }: Ended): boolean =>
  unkept === true && verdict.outcome === "succeeded" && verdict.onward === undefined;

/**
 * Returns the statement that ends these runs, of which all or none must satisfy `isUnkept`. If one of them failed, the statement also
 * inserts its dead letter, so that every failure has one. Ends without a failure have no overhead.
 * @param answer the result columns for the ended runs; by default one row for all
 */
export function finishing(
  s: string,
  ended: Ended[],
  answer?: string,
): { name: string; text: string; values: unknown[] } {
  const values = finishValues(ended);
  if (ended[0] && isUnkept(ended[0]))
    return { name: "settle-finish-unkept", text: finishSql(s, "", answer, false), values };
  if (!ended.some(({ verdict }) => verdict.outcome === "failed"))
    return { name: "settle-finish", text: finishSql(s, "", answer), values };
  const of = ({ verdict }: Ended) => (verdict.outcome === "failed" ? fingerprintOfText(verdict.error) : null);
  const at = values.length + 1;
  const letters = `, dead as (
    insert into ${s}.dead_letter (run_id, ended_ms, task_id, fingerprint)
    select g.id, g.ended_ms, g.task_id, f.fingerprint
    from gone g join unnest($1::bigint[], $2::bigint[], $${at}::text[]) as f (id, fence, fingerprint) on f.id = g.id and f.fence = g.fence where g.outcome = ${runOutcome.failed}
  )`;
  return { name: "settle-finish-failed", text: finishSql(s, letters, answer), values: [...values, ended.map(of)] };
}

/** Returns a faster statement for runs that all satisfy `isUnkept`. The runs that it does not end are left to `finishing`. */
export const leaving = (s: string, ended: Ended[]) => ({
  name: "settle-leave",
  text: leaveSql(s),
  values: leaveValues(ended),
});

const ofRun = (runId: number | undefined) => (runId === undefined ? "" : `d.run_id = ${BigInt(runId)} and `);

const ofLabels = (s: string, filter: OperationFilter) =>
  filter.labels
    ? ` and exists (select from ${s}.run_history h where h.id = d.run_id and h.ended_ms = d.ended_ms${andLabelsSql("h", filter)})`
    : "";

/** SQL: the filter as a condition on dead letters `d`, with the parameters $1 to $6. */
export const openLettersSql = (
  s: string,
  filter: OperationFilter,
) => `${ofRun(filter.runId)}d.state = ${letterState.open} and ($4::text is null or d.fingerprint = $4)
  and ($5::bigint is null or d.ended_ms >= $5) and ($6::bigint is null or d.ended_ms <= $6)
  and (coalesce($1, $2, $3) is null or d.task_id in (${taskIdsSql(s)}))${ofLabels(s, filter)}`;

export const letterValues = (filter: OperationFilter): unknown[] => [
  ...taskValues(filter),
  filter.fingerprint ?? null,
  filter.sinceMs ?? null,
  filter.untilMs ?? null,
];

export function deadLetterStore(database: Database): DeadLetterStore {
  const s = database.schema;
  const letterFields = `d.run_id as "runId", t.name as task, d.ended_ms as "endedMs", d.fingerprint, d.state, d.redriven_by as "redrivenBy"`;
  type Row = Omit<DeadLetter, "state"> & { state: number };
  const asLetter = (row: Row): DeadLetter => ({ ...row, state: letterStates[row.state] ?? "open" });
  return {
    ...failureReads(database),
    async groups(filter) {
      // The counts come only from the index of open letters. For each group, one row of the history is read by its partition's key.
      type Counted = Omit<DeadGroup, "reason"> & { error: Json; kept: boolean; ofGroups: number; ofLetters: number };
      const rows = await database.query<Counted>(
        "",
        `with counted as materialized (
           select d.fingerprint, count(*) as letters, array_agg(distinct d.task_id) as task_ids, min(d.ended_ms) as first_ms,
                  max(array[d.ended_ms, d.run_id]) as last
           from ${s}.dead_letter d where ${openLettersSql(s, filter)} group by d.fingerprint),
         largest as materialized (select * from counted order by letters desc, last desc limit ${limits.deadGroups})
         select c.fingerprint, c.letters, c.first_ms as "firstMs", c.last[1] as "lastMs", c.last[2] as "lastRunId",
                array(select name from ${s}.task where id = any(c.task_ids) order by name limit ${limits.deadGroupTasks}) as tasks,
                cardinality(c.task_ids) as "taskCount", h.error, h.id is not null as kept,
                (select count(*) from counted) as "ofGroups", (select sum(letters)::bigint from counted) as "ofLetters"
         from largest c left join ${s}.run_history h on h.id = c.last[2] and h.ended_ms = c.last[1]
         order by c.letters desc, c.last desc`,
        letterValues(filter),
      );
      return {
        groups: rows.map(({ error, kept, ofGroups: _, ofLetters: __, ...row }) => ({
          ...row,
          reason: kept ? reasonOf(error) : null,
        })),
        total: { groups: rows[0]?.ofGroups ?? 0, letters: rows[0]?.ofLetters ?? 0 },
      };
    },

    async letters(filter, limit) {
      const rows = await database.query<Row>(
        "",
        `select ${letterFields} from ${s}.dead_letter d join ${s}.task t on t.id = d.task_id
         where ${openLettersSql(s, filter)} order by d.ended_ms desc, d.run_id desc limit $7`,
        [...letterValues(filter), limit],
      );
      return rows.map(asLetter);
    },

    async linksOf(runId) {
      const [row] = await database.query<Row>(
        "dead-letter-of",
        `select ${letterFields} from ${s}.dead_letter d join ${s}.task t on t.id = d.task_id where d.run_id = $1`,
        [runId],
      );
      const [before] = await database.query<{ runId: number }>(
        "dead-letter-redriven",
        `select run_id as "runId" from ${s}.dead_letter where redriven_by = $1`,
        [runId],
      );
      return { letter: row ? asLetter(row) : null, redrives: before?.runId ?? null };
    },
  };
}
