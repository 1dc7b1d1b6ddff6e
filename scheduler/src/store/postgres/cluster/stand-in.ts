import { machineClock } from "../../../base/clock.ts";
import { silentLog } from "../../../base/log.ts";
import { systemRandom } from "../../../base/random.ts";
import type { StandInPlace } from "../../../cluster/stand-in.ts";
import type { ClaimedRun } from "../../../run/claim-store.ts";
import { release } from "../claims/release.ts";
import { Database } from "../database.ts";
import { type StandingRow, serverOf, standingSql } from "../recovery/standing.ts";
import { runRecall, runState } from "../states.ts";
import { rawMsSql } from "./clock.ts";
import { resign } from "./leadership.ts";
import { end } from "./sessions.ts";
import { notifySql } from "./signals.ts";

export interface StandInStoreOptions {
  url: string;
  schema: string;
  /** How long a heartbeat proves that the process is alive, in ms, counted from the time at which the heartbeat was sent. */
  windowMs: number;
}

type Claim = Pick<ClaimedRun, "runId" | "fence" | "taskId" | "attempt">;

/**
 * The maximum number of claimed runs that a log entry names; if there are more, it adds "and more". A longer list would not show
 * which run blocked the event loop.
 */
const mostNamed = 5;

/** Opens the store for the stand-in thread. The first request makes the connection. */
export function openStandInStore({ windowMs, ...options }: StandInStoreOptions): StandInPlace<Claim> {
  const surroundings = { clock: machineClock, random: systemRandom, log: silentLog };
  const database = new Database({ ...options, ...surroundings, connectionsMax: 1 });
  const s = database.schema;
  let storeMs = 0;
  let heardMono = 0;
  const nowMs = () => Math.round(storeMs + (database.clock.monotonic() - heardMono));
  return {
    async prove(sessionId, stillMs) {
      const beganMs = database.clock.monotonic();
      const [row] = await database.ask<StandingRow & { storeMs: number; alive: boolean; alone: boolean }>(
        "stand-in-prove",
        proveSql(s),
        [sessionId, Math.round(stillMs)],
      );
      if (!row) throw new Error("the leadership row is missing");
      [storeMs, heardMono] = [Number(row.storeMs), database.clock.monotonic()];
      return { alive: row.alive, alone: row.alone, server: serverOf(row), sureUntilMs: beganMs + windowMs };
    },
    // Reads the claims without payloads, which may be large. Recalled runs are left out, because the process itself must answer the recall.
    claims: (sessionId) =>
      database.query<Claim>(
        "stand-in-claims",
        `select id as "runId", fence, task_id as "taskId", attempt from ${s}.run
         where session_id = $1 and state = ${runState.claimed} and recall = ${runRecall.none}`,
        [sessionId],
      ),
    async giveBack(sessionId, claims) {
      const released = claims.map((claim) => ({
        ...claim,
        sessionId,
        linked: false,
        startedMs: null,
        endedMs: nowMs(),
        verdict: { kind: "released" as const },
      }));
      await release(database, released, nowMs());
    },
    resign: (term, why) => resign(database, term, nowMs(), why),
    async end(sessionId, boundMs) {
      const why = `its event loop stood still for more than ${Math.round(boundMs / 1_000)} s; under way: ${await underWay(database, sessionId)}`;
      await end(database, sessionId, null, nowMs(), why);
    },
    close: () => database.close(),
  };
}

/** Returns the names of up to `mostNamed` claimed runs of the session as text, the earliest due first. */
async function underWay(database: Database, sessionId: number): Promise<string> {
  const s = database.schema;
  const rows = await database.query<{ id: number; name: string }>(
    "stand-in-under-way",
    `select r.id, t.name from ${s}.run r join ${s}.task t on t.id = r.task_id
     where r.session_id = $1 and r.state = ${runState.claimed} order by r.due_ms, r.id limit ${mostNamed + 1}`,
    [sessionId],
  );
  const named = rows.slice(0, mostNamed).map(({ id, name }) => `${name} (run ${id})`);
  if (rows.length > mostNamed) named.push("and more");
  return named.join(", ") || "no run";
}

const proveSql = (s: string) => `
  with me as (
    update ${s}.session set beat = beat + 1, witnessed = false, still_ms = $2::int,
      seen_ms = (select round(${rawMsSql} + clock_shift_ms) from ${s}.cluster)
    where id = $1 and ended_ms is null
    and (${s}.whole() or exists (select from ${s}.recovery_session where session_id = $1 and told))
    returning id, beat)
  select ${standingSql(s)}, ${rawMsSql} + k.clock_shift_ms as "storeMs", exists (select from me) as alive,
         not exists (select from ${s}.session where ended_ms is null and id <> $1) as alone,
         case when l.session_id = $1 then (select ${notifySql(s, "'beat ' || id || ' ' || beat")}::text from me) end as told
  from ${s}.leadership l cross join ${s}.cluster k`;
