import { messageOf } from "../../../base/errors.ts";
import { gates } from "../claims/gates.ts";
import { earliestReadySql, unservedSql } from "../claims/ready.ts";
import type { Database } from "../database.ts";
import { runState } from "../states.ts";

/** The part of a heartbeat's answer that describes waiting runs. */
export interface WaitingRow {
  next_held_ms: number | null;
  next_ready_ms: number | null;
  next_mine_ms: number | null;
  next_direct_ms: number | null;
  directed: boolean;
  unserved?: string[] | null;
  gated: boolean;
  ended: { id: number; ended_ms: number }[];
}

/** Used when the state is unknown: each service that may have work then checks for itself. */
const unknown: WaitingRow = {
  next_held_ms: null,
  next_ready_ms: null,
  next_mine_ms: null,
  next_direct_ms: null,
  directed: true,
  gated: true,
  ended: [],
};

/**
 * The select list for waiting runs, with the leadership `l` and the session `me` in FROM. $1 is the session, $2 the time. Due runs in a
 * bounded queue were already judged when they came due, so the next run to judge is one that is due later.
 */
export const waitingSql = (s: string, unserved: boolean) => `
         (select min(due_ms) from ${s}.run where state = ${runState.held} and gate > 1 and (gate <> ${gates.bounded} or due_ms > $2)) as next_held_ms,
         (${earliestReadySql(s, `${s}.worker_group g join me on g.name = any (me.groups)`, "g.id")}) as next_ready_ms,
         (${earliestReadySql(s, "me", "-me.id")}) as next_mine_ms,
         (${earliestReadySql(s, "(select 0) as g (id)", "g.id")}) as next_direct_ms,
         exists (select from ${s}.run where state = ${runState.ready} and group_id < 0) as directed,
         ${unserved ? `case when l.session_id = $1 then (${unservedSql(s)}) end as unserved,` : ""}
         exists (select from ${s}.gate) or exists (select from ${s}.gathering) or exists (select from ${s}.arrival) as gated,
         (select coalesce(json_agg(e), '[]') from (
            select o.id, o.ended_ms from ${s}.session o where o.ended_ms is not null and not o.swept
            and exists (select from ${s}.run r where r.session_id = o.id and r.state = ${runState.claimed})) e) as ended`;

const besideSql = (s: string) => `
  with me as (select id, groups from ${s}.session where id = $1 and ended_ms is null)
  select ${waitingSql(s, true)} from ${s}.leadership l where $2::bigint is not null`;

/**
 * A heartbeat that includes the look at waiting runs normally takes a few milliseconds; one that takes this long is slow. A single slow
 * heartbeat may be caused by other load on the machine.
 */
const slowMs = 100;
const slowBeats = 2;
const longMs = 1_000;

/**
 * The look at waiting runs, which a heartbeat includes in its one round trip as long as the look is quick. While a snapshot is held
 * elsewhere, or vacuum does not run, the look scans all dead entries of the runs' indexes. With millions of them that takes seconds, and a
 * process whose heartbeats take seconds loses its session. So after two heartbeats in a row of 100 ms, or one of a second, heartbeats only
 * prove life, and the look runs separately, one at a time and without a deadline; a heartbeat then returns the result of the last look.
 * When a look is quick again, heartbeats include it again.
 *
 * States: *with the beat*; *beside*, with no look under way; *looking beside*.
 */
export class WaitingLook {
  readonly #database: Database;
  #beside = false;
  /** Number of slow heartbeats in a row. */
  #slow = 0;
  #looking = false;
  #last: { sessionId: number; row: WaitingRow } | undefined;

  constructor(database: Database) {
    this.#database = database;
  }

  get isBeside(): boolean {
    return this.#beside;
  }

  /** Records how long a heartbeat with its look took. @param row the look's result; undefined: there was no answer */
  took(ms: number, sessionId: number, row: WaitingRow | undefined): void {
    this.#slow = ms < slowMs ? 0 : this.#slow + 1;
    if (this.#slow < slowBeats && ms < longMs) return;
    this.#slow = 0;
    this.#beside = true;
    this.#last = row && { sessionId, row };
  }

  /** Begins a look, unless one is under way. @returns the last look's result */
  look(sessionId: number, nowMs: number): WaitingRow {
    if (!this.#looking) {
      this.#looking = true;
      void this.#look(sessionId, nowMs).finally(() => {
        this.#looking = false;
      });
    }
    return this.#last?.sessionId === sessionId ? this.#last.row : unknown;
  }

  async #look(sessionId: number, nowMs: number): Promise<void> {
    const { clock, schema, log } = this.#database;
    const beganMono = clock.monotonic();
    try {
      const values = [sessionId, Math.round(nowMs)];
      const [row] = await this.#database.query<WaitingRow>("session-waiting", besideSql(schema), values);
      if (row) this.#last = { sessionId, row };
      if (clock.monotonic() - beganMono < slowMs) this.#beside = false;
    } catch (error) {
      log.debug({ error: messageOf(error) }, "what waits could not be read; the next beat tries again");
    }
  }
}
