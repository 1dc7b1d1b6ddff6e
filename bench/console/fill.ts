/**
 * Fills a cluster with ended runs, including failures, dead letters and one long log. SQL writes the rows, because only their number
 * matters.
 */
import { carillon } from "carillon";
import type pg from "pg";
import { define } from "./server.ts";

const dayMs = 86_400_000;
const days = 7;
const failedEvery = 100;
const kindsOfFailure = 40;
const rowsPerStatement = 500_000;
/** The first id of the inserted runs, far above the ids that the sequence has returned. */
const firstId = 1_000_000_000;

/** The text of the log line, about two thirds into the log, that the search must find. */
export const needle = "needle-in-the-log";
export const logRunOf = (finished: number): number => firstId + finished - 1;

export interface Amounts {
  tasks: number;
  finished: number;
  log: number;
}

/** Fills the schema, unless an earlier call has filled it with the same amounts. @throws if the schema exists with other contents */
export async function fill(sql: pg.Client, store: string, schema: string, amounts: Amounts): Promise<void> {
  const { tasks, finished, log } = amounts;
  const made = JSON.stringify(amounts);
  const { rows: told } = await sql.query(
    "select obj_description(oid, 'pg_namespace') as made from pg_namespace where nspname = $1",
    [schema],
  );
  if (told[0]?.made === made) return;
  if (told[0]) throw new Error(`the schema ${schema} has something else in it: drop it, or name another`);
  const tower = carillon({ store, schema, scheduler: false, worker: false, handleSignals: false });
  define(tower, tasks);
  await tower.start();
  await tower.stop();
  const { rows } = await sql.query(`select min(id) as id, count(*)::int as n from "${schema}".task`);
  if (rows[0].n !== tasks) throw new Error(`${tasks} tasks were defined, the store has ${rows[0].n}`);
  const untilMs = Date.now() - 5_000;
  const fromMs = untilMs - days * dayMs;
  for (let day = Math.floor(fromMs / dayMs); day * dayMs <= untilMs; day++) {
    const name = new Date(day * dayMs).toISOString().slice(0, 10).replaceAll("-", "");
    for (const table of ["run_history", "dead_letter", "run_log"])
      await sql.query(
        `create table if not exists "${schema}".${table}_${name} partition of "${schema}".${table}
         for values from (${day * dayMs}) to (${(day + 1) * dayMs})`,
      );
  }
  const per = (untilMs - fromMs) / finished;
  for (let from = 0; from < finished; from += rowsPerStatement) {
    await sql.query(
      `insert into "${schema}".run_history (id, due_ms, slot_ms, fence, claimed_ms, created_ms, started_ms, ended_ms, task_id,
                                            version, attempt, outcome, priority, source, payload, error)
       select ${firstId} + i, ms - 25, null, i, ms - 30, ms - 15000, ms - 23, ms, $3::int + (i * 7) % $4::int, 1, 1,
              case when i % ${failedEvery} = 0 then 1 else 0 end, 5, 2, jsonb_build_object('n', i),
              case when i % ${failedEvery} = 0 then jsonb_build_object('code', 'UPSTREAM', 'message',
                'warehouse ' || (i / ${failedEvery}) % ${kindsOfFailure} || ' answered 503') end
       from (select i, ($1::bigint + (i + 1) * $2::float8)::bigint as ms from generate_series($5::int, $6::int - 1) i) x`,
      [fromMs, per, rows[0].id, tasks, from, Math.min(finished, from + rowsPerStatement)],
    );
  }
  await sql.query(
    `insert into "${schema}".dead_letter (run_id, ended_ms, task_id, fingerprint)
     select id, ended_ms, task_id, md5(error->>'message') from "${schema}".run_history where outcome = 1`,
  );
  await sql.query(
    `insert into "${schema}".tally_delta (task_id, succeeded, failed)
     select task_id, count(*) filter (where outcome = 0), count(*) filter (where outcome = 1)
     from "${schema}".run_history group by task_id`,
  );
  // Inserts the statistics of every tenth task, as the leader would have added them hour by hour.
  const ended = `from "${schema}".run_history where (task_id - ${rows[0].id}) % 10 = 0`;
  await sql.query(
    `insert into "${schema}".task_counts (task_id, hour, succeeded, failed, cancelled, skipped, missed, retried)
     select task_id, hour, sum(good) over own, sum(bad) over own, 0, 0, 0, 0 from (
       select task_id, (ended_ms / 3600000)::int as hour, count(*) filter (where outcome = 0) as good,
              count(*) filter (where outcome = 1) as bad ${ended} group by 1, 2) x
     window own as (partition by task_id order by hour)`,
  );
  await sql.query(
    `insert into "${schema}".task_times (task_id, hour, kind, bucket, runs, sum_ms, most_ms)
     select task_id, (ended_ms / 3600000)::int, kind, 8, count(*), sum(ended_ms - started_ms), max(ended_ms - started_ms)
     from (select task_id, ended_ms, started_ms, unnest(array[0, 1]) as kind ${ended}) x group by 1, 2, 3`,
  );
  await sql.query(
    `insert into "${schema}".run_log (run_id, attempt, at_ms, level, message, fields)
     select $1, 1, $2::bigint + i / 10, case when i % 997 = 0 then 2 when i % 9973 = 0 then 3 else 1 end,
            case when i = $4 then '${needle}' else 'part ' || i || ' of ' || $3 || E' \\x1b[32mok\\x1b[0m' end,
            case when i % 5 = 0 then jsonb_build_object('row', i) end
     from generate_series(1, $3::int) i`,
    [logRunOf(finished), Math.floor(untilMs - log / 10), log, Math.ceil(log * 0.65)],
  );
  await sql.query("vacuum analyze");
  await sql.query(`comment on schema "${schema}" is '${made}'`);
}
