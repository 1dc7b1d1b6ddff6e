import type { SqlClient } from "../base/change.ts";
import { CarillonError } from "../base/errors.ts";
import type { Json } from "../base/json.ts";

/** In the order of the numbers that the store keeps: the outcomes of runs first. */
export const eventTypes = ["run.succeeded", "run.failed", "run.cancelled", "run.skipped", "run.retried"] as const;
export type EventType = (typeof eventTypes)[number];

/**
 * A place in the stream of events: the snapshot of the last finished read, and how far the following read has come. An event that was
 * committed after a snapshot was taken is not visible in it, however low its number or early its time.
 */
export interface EventPlace {
  /** The number of the store's last recovery. Snapshots from before that recovery do not show which later events are new. */
  recovery: number;
  /** The time of `seen`. */
  ms: number;
  seen: string;
  /** null: the last read was finished. */
  reading: { snapshot: string; ms: number; xid: string; id: string } | null;
  /** Events of runs that ended before this time are skipped. 0: none are skipped. */
  floorMs: number;
}

export interface StoredEvent {
  type: EventType;
  runId: number;
  task: string;
  attempt: number;
  /** When the run or the attempt ended. */
  atMs: number;
  slotMs: number | null;
  key: string | null;
  result: Json;
  error: Json;
  /** The number of the transaction that recorded the event. */
  xid: string;
  /** The place directly after this event. */
  place: EventPlace;
}

export interface EventMatch {
  types: readonly EventType[];
  /** null: runs of all tasks. */
  tasks: readonly string[] | null;
}

export interface EventPage {
  events: StoredEvent[];
  /** The place after all of these events. */
  place: EventPlace;
  /** True if the page contains everything that was committed when the read began. */
  whole: boolean;
}

/** The place of a named consumer. `epoch` counts the servers that have served it: a server with an older epoch can no longer move it. */
export interface ConsumerPlace {
  epoch: number;
  place: EventPlace;
}

/** Events about runs, recorded by the statements that end or retry runs, for the types that a process wants. */
export interface EventStore {
  /**
   * Makes the store record events of these types at least until the given time. Repeatable.
   * @param after null: the returned place is the present; runs that end after this call began come after it
   * @returns `whole`: all events of these types after the place were recorded
   */
  want(
    types: readonly EventType[],
    untilMs: number,
    after: EventPlace | null,
    nowMs: number,
  ): Promise<{ place: EventPlace; whole: boolean }>;
  read(after: EventPlace, match: EventMatch, limit: number, nowMs: number): Promise<EventPage>;
  /** Creates the consumer if it does not exist; in both cases it is kept until the given time. Repeatable. */
  enrol(name: string, place: EventPlace, untilMs: number): Promise<void>;
  /**
   * Begins to serve a consumer. Each call, even a repeated one, counts as another server. @returns null: there is no consumer of this name
   */
  serve(name: string): Promise<ConsumerPlace | null>;
  /** Moves the consumer. Repeatable. @returns false: another server serves it now, or it was deleted */
  move(name: string, epoch: number, place: EventPlace, untilMs: number): Promise<boolean>;
  /**
   * The same, in one transaction with the caller's work. After a lost reply, `serve` shows whether it was committed.
   * @throws the errors of the work; the transaction is then rolled back
   */
  moveWith(
    name: string,
    epoch: number,
    place: EventPlace,
    untilMs: number,
    work: (client: SqlClient) => Promise<void>,
  ): Promise<boolean>;
  /** @returns whether the consumer existed */
  forget(name: string): Promise<boolean>;
}

/** Writes a place as a text without spaces, for clients, which store it without reading it. */
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

/** True if PostgreSQL accepts the text as a snapshot. */
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

/** True if the snapshot shows what this transaction committed. */
export function isVisible(xid: string, snapshot: string): boolean {
  const [, end = "0", open = ""] = snapshot.split(":");
  return BigInt(xid) < BigInt(end) && !open.split(",").includes(xid);
}
