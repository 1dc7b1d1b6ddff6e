import type pg from "pg";
import { pause } from "../../../base/clock.ts";
import type { Database } from "../database.ts";

/** A signal is heard this long after its commit at most, and the time of one statement. */
export const pollMs = 150;
/** After a silence this long signals may have been deleted unread; they are kept for twice as long. */
const silenceMs = 15_000;
const kept = "30 s";
/**
 * Writers keep signals for as long as somebody polls: asked for anew when less than half of it is left, or more than all of it, as
 * after the store's clock was set back.
 */
const wantedS = 30;
const renewS = 15;
/** Of more than this it is cheaper to look at everything. */
const signalsMost = 1_000;

/** A reader of signals has asked for them. */
interface Asked {
  /** What was committed by then, as a snapshot. */
  seen: string;
  /** How many transactions were under way then: they may have told something while nobody had asked. */
  unsure: number;
}

interface Poll {
  seen: string;
  leftS: number;
  texts: string[];
  /** How many of those transactions still are. */
  unsure: number;
}

interface Polling {
  database: Database;
  /** Its own, through the pooler: it holds a connection to the server only while it is asked. */
  client: pg.Client;
  hear: (payload: string) => void;
  resync: () => void;
  signal: AbortSignal;
}

/**
 * Reads signals from their table where LISTEN does not work. A snapshot tells those that were committed since the last poll from
 * those that were read, in whichever order they commit. Ends when `signal` aborts; rejects when the connection breaks.
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
      // Nobody has polled for a while, or the server lost the table as it crashed or was replaced.
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

/** Of several processes that poll, mostly one does this for all. The row tells readers that it stands, the sequence tells writers. */
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
