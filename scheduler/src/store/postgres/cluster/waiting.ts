import { messageOf } from "../../../base/errors.ts";
import { earliestReadySql, unservedSql } from "../claims/ready.ts";
import type { Database } from "../database.ts";
import { runState } from "../states.ts";

/** What waits in the store, as a beat tells it. */
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

/** Nothing is known: whoever might have to do something looks by itself. */
const unknown: WaitingRow = {
  next_held_ms: null,
  next_ready_ms: null,
  next_mine_ms: null,
  next_direct_ms: null,
  directed: true,
  gated: true,
  ended: [],
};

/** The list of a SELECT from the leadership `l`, beside the session `me`. $1 is the session, $2 the time. */
export const waitingSql = (s: string, unserved: boolean) => `
         (select min(due_ms) from ${s}.run where state = ${runState.held} and gate > 1) as next_held_ms,
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

/** A beat with its look at what waits takes some milliseconds. One may be slow because the machine does something else. */
const slowMs = 100;
const slowBeats = 2;
const longMs = 1_000;

/**
 * The look at what waits, which a beat brings with it for one round trip, as long as it is quick. While a snapshot is held elsewhere, or vacuum
 * does not come by, it walks all dead entries of the runs' indexes, which takes seconds with millions of them, and a process whose beats
 * take seconds loses its session. So after two in a row that took 100 ms, or one that took a second, beats only prove life, and the look
 * goes on beside them, one at a time, without a deadline; a beat tells what the last one found. When a look is quick again the beats
 * bring it.
 *
 * States: *with the beat*; *beside*, with no look under way; *looking beside*.
 */
export class WaitingLook {
  readonly #database: Database;
  #beside = false;
  /** Beats in a row. */
  #slow = 0;
  #looking = false;
  #last: { sessionId: number; row: WaitingRow } | undefined;

  constructor(database: Database) {
    this.#database = database;
  }

  get isBeside(): boolean {
    return this.#beside;
  }

  /** A beat with its look took so long. @param row what it found; undefined: it was not answered */
  took(ms: number, sessionId: number, row: WaitingRow | undefined): void {
    this.#slow = ms < slowMs ? 0 : this.#slow + 1;
    if (this.#slow < slowBeats && ms < longMs) return;
    this.#slow = 0;
    this.#beside = true;
    this.#last = row && { sessionId, row };
  }

  /** Begins a look, unless one is under way. @returns what the last one found */
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
