import type { Leadership, Term } from "../../../cluster/session-store.ts";
import type { Database } from "../database.ts";
import { notifySql } from "./signals.ts";

interface Campaign {
  sessionId: number;
  node: string;
  observed: Leadership;
  nowMs: number;
  deposing: boolean | undefined;
}

// Takes leadership only if it is vacant, if the leader's session has ended, or if $5 is true, which deposes the leader.
const campaignSql = (s: string) => `
  with won as (
    update ${s}.leadership l set term = l.term + 1, session_id = $1
    where l.term = $3
      and (l.session_id is null or $5 or exists (select from ${s}.session o where o.id = l.session_id and o.ended_ms is not null))
      and exists (select from ${s}.session me where me.id = $1 and me.ended_ms is null)
    returning l.term
  ), closed as (
    update ${s}.term t set ended_ms = $4, ended_why = coalesce(o.ended_why, case when $5 then 'deposed: another is first in line' else 'left vacant' end)
    from won, ${s}.session o where t.term = won.term - 1 and t.ended_ms is null and o.id = t.session_id
  ), told as (
    insert into ${s}.term (term, session_id, node, elected_ms) select term, $1, $2, $4 from won
  )
  select term, ${notifySql(s, "'leadership'")} from won`;

export async function campaign(
  database: Database,
  { sessionId, node, observed, nowMs, deposing = false }: Campaign,
): Promise<number | null> {
  const s = database.schema;
  const rows = await database.ask<{ term: number }>("session-campaign", campaignSql(s), [
    sessionId,
    node,
    observed.term,
    Math.round(nowMs),
    deposing,
  ]);
  const term = rows[0]?.term ?? null;
  if (term !== null) database.memory.raise({ term });
  return term;
}

export async function resign(database: Database, term: number, nowMs: number, why: string): Promise<void> {
  const s = database.schema;
  await database.ask(
    "session-resign",
    `with down as (update ${s}.leadership set session_id = null where term = $1 returning term),
          closed as (update ${s}.term t set ended_ms = $2, ended_why = $3 from down
                     where t.term = down.term and t.ended_ms is null)
     select ${notifySql(s, "'leadership'")} from down`,
    [term, Math.round(nowMs), why],
  );
}

export async function terms(database: Database, limit: number): Promise<Term[]> {
  const s = database.schema;
  return database.query<Term>(
    "session-terms",
    // The term of a leader that crashed has no recorded end until another process begins the next term. Its session's end is used instead.
    `select t.term, t.node, t.session_id as "sessionId", t.elected_ms as "electedMs",
            coalesce(t.ended_ms, o.ended_ms) as "endedMs", coalesce(t.ended_why, o.ended_why) as "endedWhy"
     from ${s}.term t left join ${s}.session o on o.id = t.session_id order by t.term desc limit $1`,
    [limit],
  );
}
