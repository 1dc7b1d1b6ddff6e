/**
 * Inserts, claims and completes runs by bare SQL, to measure this server's current rate for the statements alone. One connection sends one
 * prepared statement after the other, in batches of 2,000. The live table has the fewest columns that a scheduler needs, and one index for
 * claims. Two layouts: a completed row is deleted, or it is moved to a history table with an index on its end.
 */
import pg from "pg";
import type { Figures } from "../measure/figures.ts";

const batch = 2_000;

const tables = `
  drop schema if exists raw_life cascade;
  create schema raw_life;
  create table raw_life.run (
    id bigint primary key, due_ms bigint not null, created_ms bigint not null, fence bigint, claimed_ms bigint,
    task_id int not null, group_id int not null, state smallint not null, priority smallint not null, payload jsonb);
  create index on raw_life.run (group_id, due_ms) where state = 2;
  create sequence raw_life.fence cache 1;
  create table raw_life.history (
    id bigint not null, due_ms bigint not null, created_ms bigint not null, fence bigint, claimed_ms bigint,
    ended_ms bigint not null, task_id int not null, outcome smallint not null, priority smallint not null, payload jsonb);
  create index on raw_life.history using brin (ended_ms);`;

const insertSql = `
  insert into raw_life.run (id, due_ms, created_ms, task_id, group_id, state, priority, payload)
  select id, due_ms, $3, 1, 1, 2, 5, to_jsonb(id) from unnest($1::bigint[], $2::bigint[]) as i (id, due_ms)`;

const claimSql = `
  with picked as materialized (
    select id from raw_life.run where state = 2 and group_id = 1 and due_ms <= $1 order by due_ms limit $2 for update skip locked)
  update raw_life.run r set state = 3, claimed_ms = $1, fence = nextval('raw_life.fence')
  from picked where r.id = picked.id returning r.id, r.fence, r.task_id, r.due_ms, r.payload`;

const goneSql = `
  delete from raw_life.run r using unnest($1::bigint[], $2::bigint[]) as i (id, fence)
  where r.id = i.id and r.fence = i.fence and r.state = 3`;

const movedSql = `
  with gone as (
    ${goneSql} returning r.id, r.due_ms, r.created_ms, r.fence, r.claimed_ms, r.task_id, r.priority, r.payload)
  insert into raw_life.history (id, due_ms, created_ms, fence, claimed_ms, ended_ms, task_id, outcome, priority, payload)
  select id, due_ms, created_ms, fence, claimed_ms, $3, task_id, 0, priority, payload from gone`;

/**
 * Returns rates in rows per second. `per_s` covers claim and complete with history, the same work as the bench `drain`; `per_s_no_history`
 * covers both without history.
 * @throws if a row was not completed
 */
export async function rawLife(url: string, rows: number): Promise<Figures> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query("checkpoint");
    const kept = await life(client, rows, true);
    await client.query("checkpoint");
    const gone = await life(client, rows, false);
    const perS = (ms: number) => (rows * 1_000) / ms;
    return {
      insert_per_s: perS(Math.min(kept.insertMs, gone.insertMs)),
      claim_per_s: perS(Math.min(kept.claimMs, gone.claimMs)),
      complete_per_s: perS(kept.completeMs),
      complete_per_s_no_history: perS(gone.completeMs),
      per_s: perS(kept.claimMs + kept.completeMs),
      per_s_no_history: perS(gone.claimMs + gone.completeMs),
    };
  } finally {
    await client.query("drop schema if exists raw_life cascade");
    await client.end();
  }
}

async function life(client: pg.Client, rows: number, history: boolean) {
  await client.query(tables);
  const nowMs = Date.now();
  const insertMs = await timed(async () => {
    for (let from = 0; from < rows; from += batch) {
      const ids = Array.from({ length: Math.min(batch, rows - from) }, (_, i) => from + i);
      await client.query({ name: "raw-insert", text: insertSql, values: [ids, ids.map((id) => nowMs + id), nowMs] });
    }
  });
  let [claimMs, completeMs, done] = [0, 0, 0];
  while (done < rows) {
    const untilMs = nowMs + rows;
    let claimed: { id: string; fence: string }[] = [];
    claimMs += await timed(async () => {
      claimed = (await client.query({ name: "raw-claim", text: claimSql, values: [untilMs, batch] })).rows;
    });
    if (claimed.length === 0) throw new Error(`of ${rows} rows only ${done} could be claimed`);
    const values = [claimed.map(({ id }) => id), claimed.map(({ fence }) => fence)];
    completeMs += await timed(async () => {
      const ended = history
        ? await client.query({ name: "raw-moved", text: movedSql, values: [...values, nowMs] })
        : await client.query({ name: "raw-gone", text: goneSql, values });
      done += ended.rowCount ?? 0;
    });
  }
  const { rows: counts } = await client.query(
    "select (select count(*) from raw_life.run)::int as live, (select count(*) from raw_life.history)::int as history",
  );
  if (counts[0].live !== 0 || counts[0].history !== (history ? rows : 0))
    throw new Error(`the rows are not where they should be: ${JSON.stringify(counts[0])}`);
  return { insertMs, claimMs, completeMs };
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}
