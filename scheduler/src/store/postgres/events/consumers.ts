import { CarillonError } from "../../../base/errors.ts";
import type { ConsumerRecord, EventPlace, EventStore } from "../../event-store.ts";
import { audited } from "../access/audit.ts";
import type { Database } from "../database.ts";

/** A snapshot in which no transaction is visible. */
export const nothingSeen = "1:1:";

const fields = `name, (place->>'ms')::float8 as "placeMs", until_ms::float8 as "untilMs", failing`;

/** The part of the events' store that shows and restarts named consumers. */
export function consumerStore(database: Database): Pick<EventStore, "failed" | "consumers" | "restart"> {
  const s = database.schema;
  return {
    async failed(name, epoch, failing, untilMs) {
      const rows = await database.query(
        "event-failed",
        `update ${s}.event_consumer set failing = $3, until_ms = greatest(until_ms, $4)
         where name = $1 and epoch = $2 returning 1`,
        [name, epoch, JSON.stringify(failing), Math.round(untilMs)],
      );
      return rows.length > 0;
    },

    consumers: () =>
      database.query<ConsumerRecord>(
        "event-consumers",
        `select ${fields} from ${s}.event_consumer order by name collate "C"`,
        [],
      ),

    restart: (name, fromMs, { author, reason, nowMs }) =>
      database.transaction(async (client) => {
        const { rows } = await client.query(
          `select ${fields}, place, (select recovery from ${s}.cluster) as recovery from ${s}.event_consumer
           where name = $1 and place ? 'seen' for update of event_consumer`,
          [name],
        );
        const [found] = rows as unknown as (ConsumerRecord & { recovery: number; place: EventPlace })[];
        if (!found) throw consumerUnknown(name);
        if (fromMs !== null && fromMs > nowMs) throw sinceLater(nowMs);
        const { recovery, placeMs } = found;
        const ms = fromMs === null ? placeMs : Math.round(fromMs);
        const place = fromMs === null ? found.place : { recovery, ms, seen: nothingSeen, reading: null, floorMs: ms };
        // The higher epoch makes the process that serves the consumer give it up and begin from the new position.
        const { rows: moved } = await client.query(
          `update ${s}.event_consumer set place = $2, epoch = epoch + 1, failing = null where name = $1 returning ${fields}`,
          [name, JSON.stringify(place)],
        );
        const entry = {
          atMs: nowMs,
          who: author,
          about: "cluster" as const,
          named: name,
          why: reason,
          act: "redeliver",
        };
        await audited(client, s, { ...entry, before: { placeMs }, after: { placeMs: ms } });
        return moved[0] as unknown as ConsumerRecord;
      }),
  };
}

const sinceLater = (nowMs: number) =>
  new CarillonError("OPTION_INVALID", "since is in the future: events that are still to come would be left out", {
    path: "since",
    hint: `It is ${new Date(nowMs).toISOString()} by the store's clock. Give that time, or an earlier one.`,
  });

const consumerUnknown = (name: string) =>
  new CarillonError("CONSUMER_UNKNOWN", `no consumer of events is called ${name}`, {
    hint: "GET /v1/event-consumers lists them. A receiver of the audit log cannot be set back.",
  });
