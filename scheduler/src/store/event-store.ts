import type { Change, SqlClient } from "../base/change.ts";
import { CarillonError } from "../base/errors.ts";
import type { Json } from "../base/json.ts";

/** Events about the ends of runs, and of attempts that are retried. */
export const runEventTypes = ["run.succeeded", "run.failed", "run.cancelled", "run.skipped", "run.retried"] as const;
export type RunEventType = (typeof runEventTypes)[number];
/** Events about the outcomes of slots. */
export const slotEventTypes = ["slot.planned", "slot.caught-up", "slot.skipped", "slot.missed"] as const;
export type SlotEventType = (typeof slotEventTypes)[number];
/** Events about changes of what users define. */
export const changeEventTypes = [
  "task.changed",
  "schedule.changed",
  "calendar.changed",
  "limit.changed",
  "alarm-rule.changed",
] as const;
export type ChangeEventType = (typeof changeEventTypes)[number];
/** The types in the order of the numbers by which the store records them. */
export const eventTypes = [...runEventTypes, ...slotEventTypes, ...changeEventTypes] as const;
export type EventType = (typeof eventTypes)[number];

/**
 * A position in the stream of events: the snapshot of the last completed read, and how far the next read has come. Snapshots are needed
 * because an event that is committed after a snapshot is not visible in it, even if its id is lower or its time earlier.
 */
export interface EventPlace {
  /** The number of the store's last recovery. Snapshots from before a recovery cannot be used to tell which events are new. */
  recovery: number;
  /** The time of the snapshot `seen`, in epoch ms. */
  ms: number;
  seen: string;
  /** The read in progress; null if the last read was completed. */
  reading: { snapshot: string; ms: number; xid: string; id: string } | null;
  /** Events of runs that ended before this time (epoch ms) are skipped; 0 skips none. */
  floorMs: number;
}

/** The content of an event about a run, in addition to what the history has. */
export interface RunContent {
  labels: Record<string, string>;
}

/** The content of an event about a slot, or about the slots of a gap. */
export interface SlotContent {
  /** The slot, or the first slot of the gap, in epoch ms. */
  slot: number;
  /** The last slot of the gap, in epoch ms; absent for a single slot. */
  until?: number;
  /** The number of slots in the gap; absent for a single slot, and if the slots were too many to be counted. */
  slots?: number;
  why?: string;
}

/** The content of an event about a change. It names what was changed, and contains no definition. */
export interface ChangeContent {
  /** The id of the change's entry in the audit log. */
  entry: number;
  act: string;
  named: string;
  by: string;
  why: string;
  /** The version before the change, or the value of a limit; null: there was none. */
  before: Json;
  after: Json;
}

export interface StoredEvent {
  type: EventType;
  /** 0 for events about changes, and about slots without a run. */
  runId: number;
  /** The task's name; null: the event is about something else. */
  task: string | null;
  /** The task's group, or the group whose limit was changed. */
  group: string | null;
  /** The run's labels, or for other events the labels that the task gives its runs. */
  labels: Record<string, string> | null;
  attempt: number;
  /** When the run or the attempt ended, or when the slot's outcome or the change was recorded, in epoch ms. */
  atMs: number;
  slotMs: number | null;
  key: string | null;
  result: Json;
  error: Json;
  /** The content of an event about a slot or a change; for events about runs only the labels, if there are any. */
  told: SlotContent | ChangeContent | RunContent | null;
  /** The id of the transaction that recorded the event. */
  xid: string;
  /** The position directly after this event. */
  place: EventPlace;
}

export interface EventMatch {
  types: readonly EventType[];
  /** The names of the tasks; null means all tasks. */
  tasks: readonly string[] | null;
}

export interface EventPage {
  events: StoredEvent[];
  /** The position after all of these events. */
  place: EventPlace;
  /** True if the page ends with the last event that was committed when the read began. */
  whole: boolean;
}

/**
 * The position of a named consumer. `epoch` increases each time a process begins to serve the consumer; a process with an older epoch
 * cannot change the position any more.
 */
export interface ConsumerPlace<Place = EventPlace> {
  epoch: number;
  place: Place;
}

/** The position in the audit log: the number of the last row of the chain that was sent. */
export interface AuditPlace {
  seq: number;
}

/** A failed attempt to deliver an event to a named consumer. Later events wait until the event is handled. */
export interface FailedDelivery {
  type: EventType;
  /** 0 for an event without a run. */
  runId: number;
  /** The task's name; null: the event is about something else. */
  task: string | null;
  /** The event's own time, in epoch ms; absent if a process of an older version recorded the failure. */
  eventMs?: number;
  /** Counted from 1. */
  attempt: number;
  error: string;
  /** When the attempt failed, in epoch ms. */
  atMs: number;
  /** When the consumer gets the event again, in epoch ms. */
  againMs: number;
}

export interface ConsumerRecord {
  name: string;
  /** The time up to which events have been handled, in epoch ms; null for a receiver of the audit log, whose position is a row. */
  placeMs: number | null;
  /** The consumer is deleted after this time unless a process serves it, in epoch ms. */
  untilMs: number;
  failing: FailedDelivery | null;
}

/** Events of the cluster. The statement that makes a change also records its event, if a process has requested events of this type. */
export interface EventStore {
  /**
   * Makes the store record events of these types at least until `untilMs`. Can be repeated.
   * @param after null: the returned position is now, so that runs that end after the beginning of this call come after it
   * @returns `whole` is true if all events of these types after the position were recorded
   */
  want(
    types: readonly EventType[],
    untilMs: number,
    after: EventPlace | null,
    nowMs: number,
  ): Promise<{ place: EventPlace; whole: boolean }>;
  read(after: EventPlace, match: EventMatch, limit: number, nowMs: number): Promise<EventPage>;
  /** Creates the consumer if it does not exist. In both cases it is not deleted before `untilMs`. Can be repeated. */
  enrol(name: string, place: EventPlace | AuditPlace, untilMs: number): Promise<void>;
  /**
   * Begins to serve a consumer and increases its epoch. A repeated call increases the epoch again.
   * @returns null if there is no consumer with this name
   */
  serve<Place = EventPlace>(name: string): Promise<ConsumerPlace<Place> | null>;
  /** @returns false if another process serves the consumer now, or if it was restarted or deleted */
  serves(name: string, epoch: number): Promise<boolean>;
  /**
   * Stores the consumer's new position. Can be repeated.
   * @returns false if another process serves the consumer now, or if it was deleted
   */
  move(name: string, epoch: number, place: EventPlace | AuditPlace, untilMs: number): Promise<boolean>;
  /**
   * Like `move`, but in one transaction together with the caller's work. If the response is lost, `serve` shows whether the transaction was
   * committed.
   * @throws the errors of `work`; the transaction is then rolled back
   */
  moveWith(
    name: string,
    epoch: number,
    place: EventPlace,
    untilMs: number,
    work: (client: SqlClient) => Promise<void>,
  ): Promise<boolean>;
  /**
   * Stores a failed attempt, until the consumer's next position. The consumer is not deleted before `untilMs`.
   * @returns false if another process serves the consumer now
   */
  failed(name: string, epoch: number, failing: FailedDelivery, untilMs: number): Promise<boolean>;
  /** Returns all named consumers, ordered by name. */
  consumers(): Promise<ConsumerRecord[]>;
  /**
   * Lets the process that serves the consumer begin anew.
   * @param fromMs the consumer's new position: it gets the retained events of this time and later ones, handled or not, and no earlier
   * ones. null: the position stays, so it gets the failing event at once, and then those that it has not handled
   * @throws CONSUMER_UNKNOWN, also for a receiver of the audit log; OPTION_INVALID for a time in the future
   */
  restart(name: string, fromMs: number | null, change: Change): Promise<ConsumerRecord>;
  /** @returns true if the consumer existed */
  forget(name: string): Promise<boolean>;
}

/** Formats a position as text without spaces. Clients store this cursor without interpreting it. */
export function cursorOf({ recovery, ms, seen, reading, floorMs }: EventPlace): string {
  const { snapshot, ms: readMs, xid, id } = reading ?? { snapshot: "", ms: "", xid: "", id: "" };
  return [recovery, ms, floorMs, seen, snapshot, readMs, xid, id].join("~");
}

const shape = /^\d{1,9}(?:~\d{1,15}){2}~[\d:,]{1,9999}~(?:[\d:,]{1,9999}(?:~\d{1,18}){3}|~~~)$/;
const snapshotShape = /^\d{1,18}:\d{1,18}:(?:\d{1,18}(?:,\d{1,18})*)?$/;

/** Parses a cursor. @throws OPTION_INVALID if the text is not a cursor */
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

/** True if PostgreSQL accepts the text as a pg_snapshot. */
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

/** True if the changes of this transaction are visible in the snapshot. */
export function isVisible(xid: string, snapshot: string): boolean {
  const [, end = "0", open = ""] = snapshot.split(":");
  return BigInt(xid) < BigInt(end) && !open.split(",").includes(xid);
}
