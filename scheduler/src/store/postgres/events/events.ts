import {
  type ConsumerPlace,
  type EventMatch,
  type EventPage,
  type EventPlace,
  type EventStore,
  type EventType,
  eventTypes,
  type StoredEvent,
} from "../../event-store.ts";
import type { Database } from "../database.ts";
import { consumerStore, nothingSeen } from "./consumers.ts";
import { limitKind, retriedKind } from "./recording.ts";

/** After the store lost data, a reader goes back this far, in ms, from the time of its place. */
const backMs = 15 * 60_000;
const kindsOf = (types: readonly EventType[]) => types.map((type) => eventTypes.indexOf(type));

/** A row of a page of events. If there are no events, one row contains only the state of the store. */
type Row = { recovery: number; snapshot: string; back: boolean } & (
  | { id: null }
  | ({
      id: string;
      kind: number;
    } & Omit<StoredEvent, "type" | "place">)
);

export function eventStore(database: Database): EventStore {
  const s = database.schema;
  return {
    async want(types, untilMs, after, nowMs) {
      const kinds = kindsOf(types);
      await database.query(
        "event-want",
        `insert into ${s}.event_kind as k (kind, until_ms) select x.kind, $2 from unnest($1::smallint[]) as x (kind) order by 1
         on conflict (kind) do update set until_ms = excluded.until_ms where k.until_ms < excluded.until_ms`,
        [kinds, Math.round(untilMs)],
      );
      // This must be a separate statement, so that its snapshot shows the rows written above.
      const [row] = await database.query<{ recovery: number; seen: string; whole: boolean }>(
        "event-wanted",
        `select recovery, pg_current_snapshot()::text as seen,
                (select count(*) from ${s}.event_kind where kind = any($1::smallint[])
                   and ($2::pg_snapshot is null or pg_visible_in_snapshot(since, $2::pg_snapshot) and kept_ms <= $3::bigint))
                  = cardinality($1::smallint[]) as whole
         from ${s}.cluster`,
        // After lost data, a reader that started again has an empty snapshot in `seen`. The snapshot that it is reading is compared
        // instead.
        [kinds, (after?.seen === nothingSeen ? after.reading?.snapshot : after?.seen) ?? null, after?.ms ?? null],
      );
      const { recovery, seen, whole } = row as NonNullable<typeof row>;
      return { place: after ?? { recovery, ms: Math.round(nowMs), seen, reading: null, floorMs: 0 }, whole };
    },

    async read(after, match, limit, nowMs) {
      const page = await read(database, { after, match, limit, nowMs });
      if (page) return page;
      const { ms, recovery } = after;
      const floorMs = Math.max(0, ms - backMs);
      const anew = { recovery, ms, seen: nothingSeen, reading: null, floorMs };
      return (await read(database, { after: anew, match, limit, nowMs, isAnew: true })) as EventPage;
    },

    async enrol(name, place, untilMs) {
      await database.query(
        "event-enrol",
        `insert into ${s}.event_consumer as c (name, place, until_ms) values ($1, $2, $3)
         on conflict (name) do update set until_ms = greatest(c.until_ms, excluded.until_ms)`,
        [name, JSON.stringify(place), Math.round(untilMs)],
      );
    },

    async serve<Place>(name: string) {
      const [row] = await database.query<ConsumerPlace<Place>>(
        "event-serve",
        `update ${s}.event_consumer set epoch = epoch + 1 where name = $1 returning epoch, place`,
        [name],
      );
      return row ?? null;
    },

    async serves(name, epoch) {
      const rows = await database.query(
        "event-serves",
        `select 1 from ${s}.event_consumer where name = $1 and epoch = $2`,
        [name, epoch],
      );
      return rows.length > 0;
    },

    async move(name, epoch, place, untilMs) {
      const rows = await database.query("event-move", moveSql(s), [
        name,
        epoch,
        JSON.stringify(place),
        Math.round(untilMs),
      ]);
      return rows.length > 0;
    },

    async moveWith(name, epoch, place, untilMs, work) {
      let failure: { error: unknown } | undefined;
      try {
        return await database.transaction(async (client) => {
          // While this transaction is open, another server that takes over this consumer waits here.
          const { rows } = await client.query(moveSql(s), [name, epoch, JSON.stringify(place), Math.round(untilMs)]);
          if (rows.length === 0) return false;
          await work(client).catch((error) => {
            failure = { error };
            throw error;
          });
          return true;
        });
      } catch (error) {
        // An error of `work` is thrown unchanged, because it may look like an error of the store.
        throw failure ? failure.error : error;
      }
    },

    ...consumerStore(database),

    async forget(name) {
      const rows = await database.query(
        "event-forget",
        `delete from ${s}.event_consumer where name = $1 returning name`,
        [name],
      );
      return rows.length > 0;
    },
  };
}

/**
 * SQL: stores a consumer's position. Only a changed position clears `failing`: a process that begins to serve the consumer stores the same
 * position again.
 */
const moveSql = (s: string) =>
  `update ${s}.event_consumer set place = $3, until_ms = greatest(until_ms, $4), failing = case when place = $3::jsonb then failing end
   where name = $1 and epoch = $2 returning 1`;

interface Read {
  after: EventPlace;
  match: EventMatch;
  limit: number;
  nowMs: number;
  /** True to read from the place in any case, even if the store has lost data since. */
  isAnew?: boolean;
}

/** Reads a page of events. @returns null if the store has lost data since the place was recorded */
async function read(
  database: Database,
  { after, match: { types, tasks }, limit, nowMs, isAnew = false }: Read,
): Promise<EventPage | null> {
  const { seen, ms, reading, floorMs } = after;
  const rows = await database.query<Row>("event-read", readSql(database.schema), [
    seen,
    reading?.snapshot ?? null,
    reading?.xid ?? "0",
    reading?.id ?? "0",
    kindsOf(types),
    tasks,
    floorMs,
    limit,
  ]);
  const { recovery, snapshot, back } = rows[0] as Row;
  if (!isAnew && (back || recovery !== after.recovery)) return null;
  const readMs = reading?.ms ?? Math.round(nowMs);
  const events = rows.flatMap((row) => {
    if (row.id === null) return [];
    const { recovery: _, snapshot: __, back: ___, id, kind, ...event } = row;
    const place = { recovery, ms, seen, reading: { snapshot, ms: readMs, xid: row.xid, id }, floorMs };
    return [{ ...event, type: eventTypes[kind] as EventType, place }];
  });
  const whole = events.length < limit;
  const last = events.at(-1);
  const done = { recovery, ms: readMs, seen: snapshot, reading: null, floorMs: 0 };
  return { events, place: whole || !last ? done : last.place, whole };
}

/**
 * SQL: reads events. Parameters: $1 the snapshot already read, $2 the snapshot that is being read, or null, $3 and $4 the last event of
 * that read, $5 kinds, $6 names of tasks, or null, $7 the earliest time, $8 the limit. A transaction is not visible in a snapshot if it was
 * open when the snapshot was taken, or if its number is at or above the snapshot's end. These two cases are two scans of the index, which
 * never read an event twice, however long another transaction stays open.
 */
const readSql = (s: string) => {
  const walk = (where: string) => `(
      select xid, id, ended_ms, run_id, task_id, attempt, kind, told from ${s}.event
      where ${where} and (xid, id) > ($3::xid8, $4::bigint) and pg_visible_in_snapshot(xid, n.snap)
        and kind = any($5::smallint[]) and ended_ms >= $7::bigint
        and ($6::text[] is null or task_id = any(array(select t.id from ${s}.task t where t.name = any($6::text[]))))
      order by xid, id limit $8)`;
  return `
  select n.recovery, n.snap::text as snapshot, n.back, e.id::text, e.xid::text, e.kind, e.run_id as "runId", t.name as task, e.attempt,
         e.ended_ms as "atMs", coalesce(h.slot_ms, r.slot_ms) as "slotMs", coalesce(h.key, r.key) as key, h.result,
         case when e.kind < ${retriedKind} then h.error else a.error end as error, e.told,
         case when e.kind = ${limitKind} then e.told->>'named' else g.name end as "group",
         case when e.kind <= ${retriedKind} then coalesce(e.told->'labels', h.labels, r.labels) else t.run_labels end as labels
  from (select recovery, coalesce($2::pg_snapshot, pg_current_snapshot()) as snap,
               pg_snapshot_xmax($1::pg_snapshot) > pg_snapshot_xmax(pg_current_snapshot()) as back from ${s}.cluster) n
  left join lateral (
    select * from (
      ${walk("xid = any(array(select pg_snapshot_xip($1::pg_snapshot)))")}
      union all
      ${walk("xid >= pg_snapshot_xmax($1::pg_snapshot)")}) x
    order by x.xid, x.id limit $8) e on true
  left join ${s}.task t on t.id = e.task_id
  left join ${s}.worker_group g on g.id = t.group_id
  left join lateral (
    select slot_ms, key, result, error, labels from ${s}.run_history
    where e.kind < ${retriedKind} and id = e.run_id and ended_ms = e.ended_ms limit 1) h on true
  left join lateral (
    select error from ${s}.attempt
    where e.kind = ${retriedKind} and run_id = e.run_id and attempt = e.attempt and ended_ms = e.ended_ms limit 1) a on true
  left join ${s}.run r on e.kind = ${retriedKind} and r.id = e.run_id
  order by e.xid, e.id`;
};
