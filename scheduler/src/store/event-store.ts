import type { SqlClient } from "../base/change.ts";
import { CarillonError } from "../base/errors.ts";
import type { Json } from "../base/json.ts";

/** In the order of the numbers that the store keeps: the outcomes of runs first. */
export const eventTypes = ["run.succeeded", "run.failed", "run.cancelled", "run.skipped", "run.retried"] as const;
export type EventType = (typeof eventTypes)[number];

/**
 * A place in the stream of events: the snapshot of the last finished read, and how far the read after it has come. An event that was
 * committed after a snapshot is not visible in it, however old its number and its time.
 */
export interface EventPlace {
  /** The number of the store's last recovery: snapshots from before it say nothing about what was committed after it. */
  recovery: number;
  /** The time of `seen`. */
  ms: number;
  seen: string;
  /** null: the last read was finished. */
  reading: { snapshot: string; ms: number; xid: string; id: string } | null;
  /** Events of runs that ended before this time are passed over. 0: none. */
  floorMs: number;
}

export interface StoredEvent {
  type: EventType;
  runId: number;
  task: string;
  attempt: number;
  /** When the run, or the try, ended. */
  atMs: number;
  slotMs: number | null;
  key: string | null;
  result: Json;
  error: Json;
  /** The transaction that recorded it. */
  xid: string;
  /** Directly behind this event. */
  place: EventPlace;
}

export interface EventMatch {
  types: readonly EventType[];
  /** null: runs of all tasks. */
  tasks: readonly string[] | null;
}

export interface EventPage {
  events: StoredEvent[];
  /** Behind all of them. */
  place: EventPlace;
  /** Nothing more was committed by the beginning of the read. */
  whole: boolean;
}

/** Where a named consumer is. `epoch` counts its servers: an older one moves it no more. */
export interface ConsumerPlace {
  epoch: number;
  place: EventPlace;
}

/** What happened to runs, recorded by the statements that end or retry them, for the types that are wanted. */
export interface EventStore {
  /**
   * Has events of these types recorded at least until then. Safe to repeat.
   * @param after null: the place that is returned is now; ends that begin after this call are behind it
   * @returns `whole`: all events of these types behind the place were recorded
   */
  want(
    types: readonly EventType[],
    untilMs: number,
    after: EventPlace | null,
    nowMs: number,
  ): Promise<{ place: EventPlace; whole: boolean }>;
  read(after: EventPlace, match: EventMatch, limit: number, nowMs: number): Promise<EventPage>;
  /** Makes the consumer, unless it is there; either way it is kept until then. Safe to repeat. */
  enrol(name: string, place: EventPlace, untilMs: number): Promise<void>;
  /** Begins to serve a consumer. A repetition is another server. @returns null: there is none of this name */
  serve(name: string): Promise<ConsumerPlace | null>;
  /** Safe to repeat. @returns false: another one serves it now, or it was forgotten */
  move(name: string, epoch: number, place: EventPlace, untilMs: number): Promise<boolean>;
  /**
   * The same in one transaction with the work. After a lost reply, `serve` tells whether it was committed.
   * @throws what the work throws; the transaction is then rolled back
   */
  moveWith(
    name: string,
    epoch: number,
    place: EventPlace,
    untilMs: number,
    work: (client: SqlClient) => Promise<void>,
  ): Promise<boolean>;
  /** @returns whether there was one */
  forget(name: string): Promise<boolean>;
}

/** As a text without spaces, for clients: they only keep it. */
export function cursorOf({ recovery, ms, seen, reading, floorMs }: EventPlace): string {
  const { snapshot, ms: readMs, xid, id } = reading ?? { snapshot: "", ms: "", xid: "", id: "" };
  return [recovery, ms, floorMs, seen, snapshot, readMs, xid, id].join("~");
}

const shape = /^\d{1,9}(?:~\d{1,15}){2}~[\d:,]{1,9999}~(?:[\d:,]{1,9999}(?:~\d{1,18}){3}|~~~)$/;
const snapshotShape = /^\d{1,18}:\d{1,18}:(?:\d{1,18}(?:,\d{1,18})*)?$/;

/** @throws OPTION_INVALID */
export function placeOfCursor(cursor: unknown): EventPlace {
  const parts = typeof cursor === "string" && shape.test(cursor) ? cursor.split("~") : [];
  const [recovery, ms, floorMs, seen = "", snapshot = "", readMs, xid = "", id = ""] = parts;
  if (!isSnapshot(seen) || (snapshot !== "" && !isSnapshot(snapshot)))
    throw new CarillonError("OPTION_INVALID", "this is no cursor of events", {
      path: "after",
      hint: "Give the cursor of an event.",
    });
  const reading = snapshot === "" ? null : { snapshot, ms: Number(readMs), xid, id };
  return { recovery: Number(recovery), ms: Number(ms), floorMs: Number(floorMs), seen, reading };
}

/** Whether the store takes the text as a snapshot. */
function isSnapshot(text: string): boolean {
  if (!snapshotShape.test(text)) return false;
  const [first = "", end = "", open = ""] = text.split(":");
  const [low, high] = [BigInt(first), BigInt(end)];
  let last = low;
  for (const one of open === "" ? [] : open.split(",").map(BigInt)) {
    if (one < last || one >= high) return false;
    last = one;
  }
  return low > 0n && low <= high;
}

/** Whether the snapshot shows what this transaction committed. */
export function isVisible(xid: string, snapshot: string): boolean {
  const [, end = "0", open = ""] = snapshot.split(":");
  return BigInt(xid) < BigInt(end) && !open.split(",").includes(xid);
}
