import { notifySql } from "../cluster/signals.ts";

/** The most run numbers in one signal. The text of a signal is limited to 8,000 bytes. */
const numbersPerSignal = 400;

/**
 * SQL: the CTE `heard`, which signals the ends of those runs in `gone` that a caller waits for. PostgreSQL does not execute a SELECT in a
 * CTE that the statement does not read, so the statement must select `heardSql`. While the table `awaited` is empty, `gone` is not read for
 * it.
 */
export const hearSql = (s: string) => `heard as (
    select count(${notifySql(s, "w.said")}) as heard from (
      select 'ended ' || string_agg(x.id::text, ' ') as said from (
        select a.run_id as id, row_number() over () / ${numbersPerSignal} as part from gone g join ${s}.awaited a on a.run_id = g.id
        where exists (select from ${s}.awaited)) x
      group by x.part) w)`;
export const heardSql = `(select heard from heard) as heard`;
