import { messageOf } from "../../../base/errors.ts";
import { gates } from "../claims/gates.ts";
import { earliestReadySql, unservedSql } from "../claims/ready.ts";
import type { Database } from "../database.ts";
import { runState } from "../states.ts";

/** The columns of a heartbeat's answer that describe waiting runs. */
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

/** Returned while the state of the waiting runs is unknown. Each service that may have work to do then queries the store itself. */
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
 * SQL: the select list for waiting runs; FROM has the leadership `l` and the session `me`. $1 is the session, $2 the time. Runs in a
 * bounded queue that are due have been checked against the queue's length already, so only the next run that is due later counts.
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
 * A heartbeat that also reads the waiting runs normally takes a few milliseconds. One that takes `slowMs` is slow. A single slow heartbeat
 * may be caused by other load on the machine.
 */
const slowMs = 100;
const slowBeats = 2;
const longMs = 1_000;

/**
 * Reads the waiting runs. Normally each heartbeat includes this read in its one round trip. If a transaction elsewhere holds an old
 * snapshot, or vacuum does not run, the read scans all dead entries of the runs' indexes. With millions of entries that takes seconds, and
 * a process whose heartbeats take seconds loses its session. So after two heartbeats in a row of at least 100 ms, or one of at least a
 * second, the read becomes a separate statement without a deadline, and at most one is in progress. Heartbeats then read no runs
 * themselves, and return the result of the last separate read. After a separate read that takes less than 100 ms, heartbeats include the
 * read again.
 *
 * `#beside`: the read is separate from the heartbeats. `#looking`: a separate read is in progress.
 */
export class WaitingLook {
  readonly #database: Database;
  readonly #mayBeBeside: boolean;
  #beside = false;
  /** The number of slow heartbeats in a row. */
  #slow = 0;
  #looking = false;
  #last: { sessionId: number; row: WaitingRow } | undefined;

  /** @param mayBeBeside false if every heartbeat includes the read, however long it takes */
  constructor(database: Database, mayBeBeside: boolean) {
    this.#database = database;
    this.#mayBeBeside = mayBeBeside;
  }

  get isBeside(): boolean {
    return this.#beside;
  }

  /** Records how long a heartbeat with the read took, in ms. @param row the result of the read; undefined if there was no answer */
  took(ms: number, sessionId: number, row: WaitingRow | undefined): void {
    this.#slow = ms < slowMs ? 0 : this.#slow + 1;
    if (!this.#mayBeBeside || (this.#slow < slowBeats && ms < longMs)) return;
    this.#slow = 0;
    this.#beside = true;
    this.#last = row && { sessionId, row };
  }

  /** Starts a separate read, unless one is in progress. @returns the result of the last read, or `unknown` */
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
