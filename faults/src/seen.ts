import type pg from "pg";
import type { Applied } from "../../simulation/src/history.ts";

/**
 * Installs triggers that record each claim, adoption, heartbeat, session and term in the transaction that makes it, so that an action that
 * is rolled back leaves no record.
 * @param schema the cluster's schema, quoted
 */
export async function watchStore(client: pg.Client, schema: string): Promise<void> {
  await client.query(`
    create table ${schema}.seen (
      seq bigint generated always as identity primary key, at_ms float8 not null, name text not null,
      session bigint, other bigint, run bigint, fence bigint, why text
    );
    create function ${schema}.see() returns trigger language plpgsql as $see$
    declare
      at_ms float8 := extract(epoch from clock_timestamp()) * 1000;
    begin
      if tg_table_name = 'run' then
        if new.state = 3 and (tg_op = 'INSERT' or new.fence is distinct from old.fence) then
          insert into ${schema}.seen (at_ms, name, session, run, fence) values (at_ms, 'claim', new.session_id, new.id, new.fence);
        elsif new.state = 3 and new.session_id is distinct from old.session_id then
          insert into ${schema}.seen (at_ms, name, session, other, run, fence)
            values (at_ms, 'claim-adopt', old.session_id, new.session_id, new.id, new.fence);
        end if;
      elsif tg_table_name = 'session' then
        if tg_op = 'INSERT' then
          insert into ${schema}.seen (at_ms, name, session) values (at_ms, 'session-open', new.id);
        elsif new.ended_ms is not null and old.ended_ms is null then
          insert into ${schema}.seen (at_ms, name, session, other, why)
            values (at_ms, 'session-end', new.id, old.beat, new.ended_why);
        elsif new.beat <> old.beat then
          insert into ${schema}.seen (at_ms, name, session) values (at_ms, 'session-beat', new.id);
        end if;
      elsif new.term <> old.term then
        insert into ${schema}.seen (at_ms, name, session, other) values (at_ms, 'session-campaign', new.session_id, new.term);
      elsif new.session_id is null and old.session_id is not null then
        insert into ${schema}.seen (at_ms, name, session) values (at_ms, 'session-resign', new.term);
      end if;
      return null;
    end $see$;
    create trigger see after insert or update of state, fence, session_id on ${schema}.run
      for each row when (new.state = 3) execute function ${schema}.see();
    create trigger see after insert or update on ${schema}.session for each row execute function ${schema}.see();
    create trigger see after update on ${schema}.leadership for each row execute function ${schema}.see();
  `);
}

interface Row {
  at_ms: number;
  name: string;
  session: number | null;
  other: number | null;
  run: number | null;
  fence: number | null;
  why: string | null;
}

/** Matches the reasons with which another process ends a session. */
const byAnother = /^silent|not shown|gone|seen by/;

/** Converts the records into the form that the checks read. @param nameOf returns the name of a session's process */
export function appliedOf(rows: readonly Row[], epochMs: number, nameOf: (session: number) => string): Applied[] {
  return rows.map(({ at_ms, name, session, other, run, fence, why }) => {
    const told = { atMs: at_ms - epochMs, storeMs: at_ms, who: session === null ? "" : nameOf(session), name };
    switch (name) {
      case "claim":
        return { ...told, values: [session], rows: [{ runId: run, fence }] };
      case "claim-adopt":
        return { ...told, values: [session, other], rows: [{ runId: run, fence }] };
      case "session-open":
        return { ...told, values: [session], rows: [{ id: session }] };
      case "session-end":
        return { ...told, values: [session, byAnother.test(why ?? "") ? other : null], rows: [{ id: session }] };
      case "session-campaign":
        return { ...told, values: [session], rows: [{ term: other }] };
      default:
        return { ...told, values: [session], rows: [] };
    }
  });
}

export async function readSeen(client: pg.Client, schema: string): Promise<Row[]> {
  return (await client.query<Row>(`select * from ${schema}.seen order by seq`)).rows;
}
