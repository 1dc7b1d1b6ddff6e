import type { Change, SqlClient } from "../../../base/change.ts";
import { CarillonError } from "../../../base/errors.ts";
import { type DrainedNode, type DrainStore, type Holds, holdsShown } from "../../../cluster/drain-store.ts";
import { audited } from "../access/audit.ts";
import type { Database } from "../database.ts";
import { drainLockSql } from "../migrations/0041-drained-nodes.ts";
import { drainSession } from "../runs/routes.ts";
import { runState } from "../states.ts";
import { notifySql } from "./signals.ts";

/**
 * SQL: two columns with the fields of `Holds`.
 * @param session an SQL expression for the session's number, null if the node has no session
 */
const holdsSql = (s: string, session: string) => `
  case when ${session} is not null then (
    select count(*)::int from ${s}.run r where r.session_id = ${session} and r.state = ${runState.claimed}) end as held,
  (select coalesce(json_agg(json_build_object('run', x.id, 'task', t.name, 'startedMs', x.started_ms) order by x.claimed_ms, x.id), '[]') from (
     select r.id, r.task_id, r.started_ms, r.claimed_ms from ${s}.run r where r.session_id = ${session} and r.state = ${runState.claimed}
     order by r.claimed_ms, r.id limit ${holdsShown}) x join ${s}.task t on t.id = x.task_id) as runs`;

interface Row {
  sessionId: number | null;
  drained: boolean;
}

export function drainStore(database: Database): DrainStore {
  const s = database.schema;

  /** Runs the drain or resume of one node in a transaction. A lock on the node's name serialises concurrent changes. */
  const changing = <Answer>(node: string, work: (client: SqlClient, row: Row) => Promise<Answer>) =>
    database.persist(() =>
      database.transaction(async (client) => {
        await client.query(`select pg_advisory_xact_lock(${drainLockSql(s, "$1")})`, [node]);
        const { rows } = await client.query(
          `select (select id from ${s}.session where node = $1 and ended_ms is null) as "sessionId",
                  exists (select from ${s}.drained_node where node = $1) as drained,
                  exists (select from ${s}.session where node = $1) as known`,
          [node],
        );
        const row = rows[0] as unknown as Row & { known: boolean };
        if (!row.known && !row.drained) throw unknown(node);
        return work(client, row);
      }),
    );

  /** Signals all processes to send a heartbeat. The heartbeat's answer contains whether the process may claim runs. */
  const tell = (client: SqlClient) => client.query(`select ${notifySql(s, "'leadership'")}`);

  const audit = (client: SqlClient, node: string, act: "drain" | "resume", { nowMs, author, reason }: Change) => {
    const [before, after] = act === "drain" ? [null, true] : [true, null];
    return audited(client, s, {
      atMs: nowMs,
      who: author,
      act,
      about: "node",
      named: node,
      why: reason,
      before,
      after,
    });
  };

  return {
    drain: (node, change) =>
      changing(node, async (client, { sessionId, drained }) => {
        if (!drained) {
          await client.query(`insert into ${s}.drained_node (node, since_ms, author, reason) values ($1, $2, $3, $4)`, [
            node,
            Math.round(change.nowMs),
            change.author,
            change.reason,
          ]);
          await audit(client, node, "drain", change);
        }
        if (!drained && sessionId !== null) {
          await drainSession(client, s, sessionId);
          await tell(client);
        }
        const { rows } = await client.query(`select ${holdsSql(s, "$1::bigint")}`, [sessionId]);
        return { changed: !drained, ...(rows[0] as unknown as Holds) };
      }),

    resume: (node, change) =>
      changing(node, async (client, { sessionId, drained }) => {
        if (!drained) return { changed: false };
        await client.query(`delete from ${s}.drained_node where node = $1`, [node]);
        await client.query(`update ${s}.session set draining = false where id = $1`, [sessionId]);
        await audit(client, node, "resume", change);
        await tell(client);
        return { changed: true };
      }),

    list: () =>
      database.query<DrainedNode>(
        "",
        `select d.node, d.since_ms as "sinceMs", d.author as by, d.reason as why, ${holdsSql(s, "o.id")}
         from ${s}.drained_node d left join ${s}.session o on o.node = d.node and o.ended_ms is null order by d.node`,
      ),
  };
}

const unknown = (node: string) =>
  new CarillonError("NODE_UNKNOWN", `no process has the name ${JSON.stringify(node)}, and none had it lately`, {
    hint: "See `carillon nodes list` for those that take part.",
  });
