import type { SqlClient } from "../../base/change.ts";
import type { Json } from "../../base/json.ts";
import {
  type ChangeContent,
  cursorOf,
  type EventType,
  type RunEventType,
  runEventTypes,
  type SlotContent,
  type SlotEventType,
  type StoredEvent,
} from "../../store/event-store.ts";
import type { Codecs } from "../payloads/codecs.ts";

interface OfAny {
  /** When the run or the attempt ended, or when the slot's outcome or the change was recorded, in epoch ms of the store's clock. */
  atMs: number;
  /** The position of this event. Pass it as `after` to receive only later events. */
  cursor: string;
}

interface OfRun extends OfAny {
  runId: number;
  task: string;
  /** The attempt's number, from 1. */
  attempt: number;
  slotMs: number | null;
  key: string | null;
}

interface OfSlot extends OfAny {
  task: string;
  /** The slot, or the first slot of a gap. */
  slotMs: number;
  /** The last slot of a gap; equal to `slotMs` if the event is about one slot. */
  untilMs: number;
  /** The number of slots; null: they were too many to be counted. */
  slots: number | null;
  /** The slot's run; null: it has none. */
  runId: number | null;
  /** Why the slot was skipped, missed or caught up; null: no reason is known. */
  reason: string | null;
}

interface OfChange extends OfAny {
  /** The name of the task, schedule, calendar or alarm rule; for a limit, the group, or a description of the quota. */
  named: string;
  /** The action, as in the audit log: "create", "edit", "pause", "resume", "remove", "adopt" or "limit". */
  act: string;
  /** The user or the process that made the change. */
  by: string;
  why: string;
  /** The version before the change, or the limit's value; null: there was none. */
  before: Json;
  after: Json;
  /** The number of the change's entry in the audit log. */
  entry: number;
}

/** An event of one type. The event of a success has a result; all other events of runs have an error. */
export type ClusterEventOf<Type extends EventType> = Type extends "run.succeeded"
  ? OfRun & { type: Type; result: Json }
  : Type extends RunEventType
    ? OfRun & { type: Type; error: Json }
    : Type extends SlotEventType
      ? OfSlot & { type: Type }
      : OfChange & { type: Type };

/** An event of a run anywhere in the cluster. */
export type ClusterEvent = ClusterEventOf<RunEventType>;

/** An event of any type. */
export type AnyEvent = ClusterEventOf<EventType>;

const isOfRun = (type: EventType): type is RunEventType => (runEventTypes as readonly string[]).includes(type);
const isOfSlot = (type: EventType): type is SlotEventType => type.startsWith("slot.");

/**
 * Converts a stored event to the form that handlers receive. The result is decoded if this process has the codec's key, else left as
 * stored.
 */
export async function eventOf(event: StoredEvent, codecs: Pick<Codecs, "opened">): Promise<AnyEvent> {
  const { place, type, runId, task, attempt, atMs, slotMs, key, result, error, told } = event;
  const any = { atMs, cursor: cursorOf(place) };
  if (isOfRun(type)) {
    const run = { ...any, runId, task: task as string, attempt, slotMs, key };
    if (type === "run.succeeded") return { ...run, type, result: await codecs.opened(result, run.task) };
    return { ...run, type, error };
  }
  if (!isOfSlot(type)) return { ...any, type, ...(told as ChangeContent) };
  const { slot, until = slot, slots = until === slot ? 1 : null, why = null } = told as SlotContent;
  const of = { task: task as string, slotMs: slot, untilMs: until, slots, runId: runId === 0 ? null : runId };
  return { ...any, type, ...of, reason: why };
}

/** Selects the events that are delivered. */
export interface EventsOf {
  /** Only events of this task and its runs. */
  task?: string;
  /** Only events of the tasks, and of the alarm rules, in this namespace. */
  namespace?: string;
  /** Only events of the tasks in this group, and of the group's limit. */
  group?: string;
  /** Only events of runs with all of these labels, and of tasks that give their runs these labels. */
  labels?: Record<string, string>;
  /** Begin after the event with this cursor. Default: begin with events from now on. */
  after?: string;
  /** Aborting this signal ends the events. */
  signal?: AbortSignal;
}

export interface EventsOptions<Type extends EventType = RunEventType> extends EventsOf {
  /** The types of events; default: all types of events of runs. */
  types?: readonly Type[];
}

export interface ConsumerOptions extends EventsOf {
  /**
   * Names a consumer whose position is stored. At any time one process of the cluster handles the consumer's events. Each event is handled
   * at least once, even if processes are killed. `after` is used only if the name is new.
   */
  name: string;
  /** True: the handler runs in a transaction on the store's database, which also stores the new position. */
  tx?: boolean;
}

export interface Handling {
  /** Aborts when the subscription ends, or when another process takes the consumer over. */
  signal: AbortSignal;
  /** The number of this process's attempts to handle the event, from 1. */
  attempt: number;
}

type Handles<Type extends EventType, With = Handling> = (
  event: { [Each in Type]: ClusterEventOf<Each> }[Type],
  handling: With,
) => unknown;

export interface OnEvent {
  /**
   * Calls the handler with each event of this type in the whole cluster. Resolves once the subscription is active, so that no later event
   * is missed.
   * @throws OPTION_INVALID, CURSOR_GONE, STOPPED, STORE_…
   */
  <Type extends EventType>(type: Type | readonly Type[], handler: Handles<Type>): Promise<EventListening>;
  <Type extends EventType>(
    type: Type | readonly Type[],
    options: ConsumerOptions & { tx: true },
    handler: Handles<Type, Handling & { tx: SqlClient }>,
  ): Promise<EventListening>;
  <Type extends EventType>(
    type: Type | readonly Type[],
    options: EventsOf | ConsumerOptions,
    handler: Handles<Type>,
  ): Promise<EventListening>;
}

export interface EventListening extends AsyncDisposable {
  /** Ends the subscription. Resolves once the running handler has returned or thrown. */
  close(): Promise<void>;
}

/** A handler for events of every type. */
export type AnyHandler = (event: AnyEvent, handling: Handling & { tx?: SqlClient }) => unknown;
