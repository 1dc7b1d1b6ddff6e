/** Sends the rows of the audit log to a receiver, in the order of the hash chain, each at least once. See docs/access/audit-stream.md. */
import type { AuditAbout, AuditStore } from "../../access/audit.ts";
import type { ChainRow } from "../../access/audit-chain.ts";
import { isoTime } from "../../api/run-json.ts";
import { type Clock, pause } from "../../base/clock.ts";
import { messageOf } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { Log } from "../../base/log.ts";
import type { AuditPlace, EventStore } from "../../store/event-store.ts";
import { moved, pauseAfterMs } from "./consumer.ts";

/** Takes rows of the audit log. Resolves once the receiver has them. */
export interface TakeRows {
  wants(row: ChainRow): boolean;
  /** The maximum number of rows in one call. After an error there are fewer, so that a slow receiver gets on. */
  most: number;
  take(rows: readonly ChainRow[], signal: AbortSignal): Promise<void>;
}

/**
 * How long the position of a receiver is kept, in ms, if no process sends to it. It is longer than that of events of runs, because the
 * audit log is kept longer, and a receiver whose position was lost gets the whole log again.
 */
export const auditKeptMs = 400 * 86_400_000;
const rowsPerRead = 100;
const pollMs = 1_000;
const keepAgainMs = 3_600_000;

export interface AuditStreamOf {
  name: string;
  events: EventStore;
  audit: Pick<AuditStore, "chained">;
  clock: Clock;
  now: () => number;
  log: Log;
  receiver: TakeRows;
}

/** Sends rows from the stored position on, until `over` aborts or another process serves the receiver. */
export async function serveAudit(
  of: AuditStreamOf,
  { epoch, place }: { epoch: number; place: AuditPlace },
  over: AbortSignal,
): Promise<void> {
  const { name, events, audit, clock, now } = of;
  const move = (seq: number) => moved(() => events.move(name, epoch, { seq }, now() + auditKeptMs), clock, over);
  let keptMono = Number.NEGATIVE_INFINITY;
  const batch = { most: of.receiver.most };
  for (let { seq } = place; !over.aborted; ) {
    const rows = await audit.chained(seq, rowsPerRead);
    for (let wanted = rows.filter(of.receiver.wants); wanted.length > 0; ) {
      const some = await taken(of, wanted, batch, over);
      const end = some.at(-1);
      if (!end || !(await move(end.seq))) return;
      ({ seq } = end);
      wanted = wanted.slice(some.length);
    }
    const last = rows.at(-1)?.seq ?? seq;
    // The position moves past rows that the receiver does not want, and is renewed from time to time.
    if (last > seq || clock.monotonic() - keptMono > keepAgainMs) {
      if (!(await move(last))) return;
      seq = last;
      keptMono = clock.monotonic();
    }
    if (rows.length < rowsPerRead) await pause(clock, pollMs, over);
  }
}

/**
 * Sends the first rows, again after each error. An error halves the number of rows in a call, because a receiver that is too slow for all of
 * them would never take them; each success allows one more. @returns the rows that were taken; none if `over` has aborted
 */
async function taken(
  { name, clock, log, receiver }: AuditStreamOf,
  rows: readonly ChainRow[],
  batch: { most: number },
  over: AbortSignal,
): Promise<readonly ChainRow[]> {
  for (let attempt = 1; !over.aborted; attempt++) {
    const some = rows.slice(0, batch.most);
    try {
      await receiver.take(some, over);
      batch.most = Math.min(receiver.most, batch.most + 1);
      return some;
    } catch (error) {
      if (over.aborted) break;
      batch.most = Math.ceil(some.length / 2);
      const againInMs = pauseAfterMs(attempt);
      const fields = {
        consumer: name,
        seq: rows[0]?.seq,
        rows: some.length,
        attempt,
        error: messageOf(error),
        againInMs,
      };
      log.warn(fields, "rows of the audit log were not taken; they are sent again");
      await pause(clock, againInMs, over);
    }
  }
  return [];
}

/** Returns a function that selects the rows about these kinds of objects. */
export const rowsAbout =
  (kinds: true | readonly AuditAbout[]) =>
  ({ content }: ChainRow): boolean =>
    kinds === true || kinds.includes((JSON.parse(content) as { about: AuditAbout }).about);

/** Returns a row as a CloudEvent. */
export function auditEvent({ seq, hash, content }: ChainRow, source: string) {
  const entry = JSON.parse(content) as { at: number; about: string; named: string; before: Json; after: Json };
  return {
    specversion: "1.0",
    id: `audit-${seq}`,
    source,
    type: "carillon.audit",
    subject: `${entry.about}/${entry.named}`,
    time: isoTime(entry.at),
    datacontenttype: "application/json",
    data: { seq, hash, entry },
  };
}
