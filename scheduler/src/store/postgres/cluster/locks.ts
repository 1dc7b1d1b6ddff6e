import { limits } from "../../../base/limits.ts";
import type { LockLine, LockStore, SeenSession, Standing } from "../../../cluster/lock-store.ts";
import type { Database } from "../database.ts";
import { notifySql } from "./signals.ts";

export function lockStore(database: Database): LockStore {
  const s = database.schema;
  const session = (token: string) => `split_part(${token}, '.', 1)::bigint`;
  /** SQL: a JSON array of the sessions whose ids the query `ids` selects. For a session that no longer exists, `beat` is null. */
  const sessionsOf = (ids: string, nowMs: string) => `(
    select coalesce(json_agg(json_build_object(
      'session', i.id, 'beat', o.beat, 'timeoutMs', coalesce(o.timeout_ms, 0), 'silentMs', coalesce(${nowMs} - o.seen_ms, 0))), '[]')
    from (${ids}) i left join ${s}.lock_session o on o.id = i.id)`;

  // `fence` is evaluated in the expression that appends the token to the queue, under the row's lock, so fences rise in the queue's order.
  const fence = `($5::bigint << 32) + nextval('${s}.lock_fence')`;
  const enterSql = `
    with let_in as (
      insert into ${s}.lock as l (name, permits, line, fences) values ($1, $3, array[$2], array[${fence}])
      on conflict (name) do update set
        permits = case when l.line = '{}' then excluded.permits else l.permits end,
        line = case when (l.line = '{}' or l.permits = excluded.permits) and cardinality(l.line) < ${limits.lockLine}
                         and array_position(l.line, $2) is null
                    then l.line || excluded.line else l.line end,
        fences = case when (l.line = '{}' or l.permits = excluded.permits) and cardinality(l.line) < ${limits.lockLine}
                           and array_position(l.line, $2) is null
                      then l.fences || (${fence}) else l.fences end
      where $4 or l.line = '{}' or cardinality(l.line) < l.permits
      returning l.permits, l.line, l.fences, array_position(l.line, $2) as rank
    ), found as (
      select permits, line, fences, rank from let_in
      union all
      select permits, line, fences, null from ${s}.lock where name = $1 and not exists (select from let_in)
    )
    select rank, fences[rank]::text as fence, permits,
           case when rank <= permits then '[]'::json
                else ${sessionsOf(`select distinct ${session("t")} as id from unnest(line[1:permits]) t`, "$6::bigint")} end as holders
    from found`;

  const beatSql = `
    with me as (
      update ${s}.lock_session set beat = beat + 1, seen_ms = $3 where id = $1 returning id
    ), lines as (
      select name, permits, line from ${s}.lock where name = any($2) and line <> '{}'
    )
    select exists (select from me) as alive, (select coalesce(json_agg(l), '[]') from lines l) as lines,
           ${sessionsOf(`select distinct ${session("t")} as id from lines, unnest(line) t`, "$3::bigint")} as sessions`;

  const leaveSql = `
    with freed as (
      update ${s}.lock set line = array_remove(line, $2),
             fences = fences[:array_position(line, $2) - 1] || fences[array_position(line, $2) + 1:]
      where name = $1 and $2 = any(line) returning line, permits
    )
    select case when cardinality(line) >= permits then ${notifySql(s, "'lock ' || line[permits]")} end from freed`;

  const evictSql = `
    with freed as (
      update ${s}.lock set
        line = array(select t from unnest(line) with ordinality u(t, i) where t <> all($2) order by i),
        fences = array(select f from unnest(line, fences) with ordinality u(t, f, i) where t <> all($2) order by i)
      where name = $1 and line && $2 returning line, permits
    )
    select ${notifySql(s, "'lock ' || t")} from freed, unnest(line[1:permits]) t`;

  const nowRounded = (nowMs: number) => Math.round(nowMs);
  return {
    async open(timeoutMs, nowMs) {
      const [row] = await database.ask<{ id: number }>(
        "lock-session-open",
        `insert into ${s}.lock_session (timeout_ms, seen_ms) values ($1, $2) returning id`,
        [timeoutMs, nowRounded(nowMs)],
      );
      if (!row) throw new Error("an insert without an answer");
      return row.id;
    },

    async beat(id, names, nowMs) {
      const [row] = await database.ask<{ alive: boolean; lines: LockLine[]; sessions: SeenSession[] }>(
        "lock-session-beat",
        beatSql,
        [id, names, nowRounded(nowMs)],
      );
      if (!row) throw new Error("a reading without an answer");
      return row;
    },

    async end(id, beat) {
      await database.ask(
        "lock-session-end",
        `delete from ${s}.lock_session where id = $1 and ($2::bigint is null or beat = $2) returning id`,
        [id, beat],
      );
    },

    async enter({ name, token, permits, wait, era, nowMs }) {
      const values = [name, token, permits, wait, era, nowRounded(nowMs)];
      for (;;) {
        const [row] = await database.ask<Standing>("lock-enter", enterSql, values);
        // The row was deleted between the two reads of one statement, so no session holds the lock. The loop tries again.
        if (row) return row;
      }
    },

    async leave(name, token) {
      return (await database.ask("lock-leave", leaveSql, [name, token])).length > 0;
    },

    async evict(name, tokens) {
      await database.ask("lock-evict", evictSql, [name, tokens]);
    },

    async forget(names) {
      await database.ask("lock-forget", `delete from ${s}.lock where name = any($1) and line = '{}'`, [names]);
    },

    async nextBase() {
      const [row] = await database.ask<{ base: number }>("lock-base", `select nextval('${s}.lock_base') as base`);
      if (!row) throw new Error("a sequence without a value");
      return row.base;
    },
  };
}
