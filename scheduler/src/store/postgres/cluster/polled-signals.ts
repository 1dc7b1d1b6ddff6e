import type pg from "pg";
import { pause } from "../../../base/clock.ts";
import type { Database } from "../database.ts";

/** The poll interval in ms: a signal is received at most this long after its commit, plus the duration of one statement. */
export const pollMs = 150;
/**
 * A process that has not polled for longer than this, in ms, resynchronises everything, because signals that it has not read may
 * have been deleted. Signals are kept for twice as long, as a safety margin.
 */
const silenceMs = 15_000;
const kept = "30 s";
/**
 * A process that polls requests signals; writers then write them to the table for `wantedS` seconds. The request is renewed when less than
 * `renewS` seconds of it are left, or when more than `wantedS` are left, as after the store's clock was set back.
 */
const wantedS = 30;
const renewS = 15;
/** If a poll finds more signals than this, the process resynchronises everything instead, because that is cheaper. */
const signalsMost = 1_000;

/** The store's state just after a reader requested signals. */
interface Asked {
  /** A snapshot, which shows the transactions that were committed at that time. */
  seen: string;
  /** The number of transactions that were open at that time. Their signals may not have been written to the table. */
  unsure: number;
}

interface Poll {
  seen: string;
  leftS: number;
  texts: string[];
  /** The number of transactions counted in `Asked.unsure` that are still open. */
  unsure: number;
}

interface Polling {
  database: Database;
  /** A dedicated client. It connects through the pooler, so it occupies a connection to the server only during a query. */
  client: pg.Client;
  hear: (payload: string) => void;
  resync: () => void;
  signal: AbortSignal;
}

/**
 * Polls the signals in their table, where LISTEN does not work. A snapshot separates signals committed since the last poll from those
 * already read, whatever the order of the commits. Resolves when `signal` aborts; rejects when the connection breaks.
 */
export async function pollSignals({ database, client, hear, resync, signal }: Polling): Promise<void> {
  const { schema: s, clock } = database;
  const ask = async (): Promise<Asked> => {
    await client.query(wantSql(s));
    const { rows } = await client.query<Asked>(askedSql);
    resync();
    return rows[0] as Asked;
  };
  let asked = await ask();
  let { seen, unsure } = asked;
  let lastMono = clock.monotonic();
  for (;;) {
    await pause(clock, pollMs, signal);
    if (signal.aborted) return;
    const { rows } = await client.query<Poll>(pollSql(s), [seen, asked.seen]);
    const [poll] = rows as [Poll];
    const silentMs = clock.monotonic() - lastMono;
    lastMono = clock.monotonic();
    if (poll.leftS <= 0) {
      // Signals may have been lost: no process has polled for a while, or the server was replaced or lost the unlogged table in a crash.
      asked = await ask();
      ({ seen, unsure } = asked);
      continue;
    }
    const ended = poll.unsure < unsure;
    ({ seen, unsure } = poll);
    const all = poll.texts.length <= signalsMost;
    if (all) for (const text of poll.texts) hear(text);
    if (ended || silentMs > silenceMs || !all) resync();
    if (poll.leftS < renewS || poll.leftS > wantedS) await client.query(wantSql(s));
  }
}

const askedSql = `
  select now::text as seen, (select count(*) from pg_snapshot_xip(now))::int as unsure from pg_current_snapshot() as now`;

const pollSql = (s: string) => `
  select pg_current_snapshot()::text as seen,
         coalesce((select extract(epoch from until - clock_timestamp()) from ${s}.signal_poll), 0)::float8 as "leftS",
         array(select said from ${s}.signal
               where xid >= pg_snapshot_xmin($1::pg_snapshot) and not pg_visible_in_snapshot(xid, $1::pg_snapshot)
               group by said order by min(said_at) limit ${signalsMost + 1}) as texts,
         (select count(*) from pg_snapshot_xip(pg_current_snapshot()) xid where xid < pg_snapshot_xmax($2::pg_snapshot))::int as unsure`;

/**
 * SQL: deletes old signals and renews the request for signals. If several processes poll, usually one of them renews the request for all.
 * Readers read the time until which the request is valid from the row of `signal_poll`; writers read it from the sequence.
 */
const wantSql = (s: string) => `
  with old as (
    delete from ${s}.signal where ctid = any(array(
      select ctid from ${s}.signal where said_at < clock_timestamp() - interval '${kept}' for update skip locked))),
  wanted as (
    insert into ${s}.signal_poll as p (until) values (clock_timestamp() + interval '${wantedS} s')
    on conflict (one) do update set until = excluded.until
    where p.until not between excluded.until - interval '1 s' and excluded.until
    returning until)
  select setval('${s}.signals_until', (extract(epoch from until) * 1000)::bigint) from wanted`;
