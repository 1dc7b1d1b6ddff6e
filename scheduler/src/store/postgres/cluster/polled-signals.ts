import type pg from "pg";
import { pause } from "../../../base/clock.ts";
import type { Database } from "../database.ts";

/** The poll interval: a signal is received at most this long after its commit, plus the time of one statement. */
export const pollMs = 150;
/** After a silence this long signals may have been deleted unread; they are kept for twice as long. */
const silenceMs = 15_000;
const kept = "30 s";
/**
 * Writers keep signals in the table for this many seconds after a process that polls has requested it. The request is renewed when less
 * than half of its time is left, or when more than all of it is left, as after the store's clock was set back.
 */
const wantedS = 30;
const renewS = 15;
/** With more signals than this it is cheaper to check everything. */
const signalsMost = 1_000;

/** The state after a reader's request for signals. */
interface Asked {
  /** A snapshot of the transactions that were committed at that time. */
  seen: string;
  /** How many transactions were open at that time: they may have sent signals that were not kept. */
  unsure: number;
}

interface Poll {
  seen: string;
  leftS: number;
  texts: string[];
  /** How many of those transactions are still open. */
  unsure: number;
}

interface Polling {
  database: Database;
  /** A client of its own, which goes through the pooler and so occupies a connection to the server only during a query. */
  client: pg.Client;
  hear: (payload: string) => void;
  resync: () => void;
  signal: AbortSignal;
}

/**
 * Reads signals from their table where LISTEN does not work. A snapshot separates signals committed since the last poll from those already
 * read, in whatever order they commit. Ends when `signal` aborts; rejects when the connection breaks.
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
      // No process has polled for a while, or the server lost the table in a crash or was replaced, so signals may have been lost.
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
 * If several processes poll, usually one of them renews the request for all. The row shows readers that the request is in force; the
 * sequence shows it to writers.
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
