import type { SqlClient } from "../../base/change.ts";
import type { Json } from "../../base/json.ts";
import { cursorOf, type EventType, type StoredEvent } from "../../store/event-store.ts";
import type { Codecs } from "../payloads/codecs.ts";

interface OfRun {
  runId: number;
  task: string;
  /** The attempt's number, from 1. */
  attempt: number;
  /** When the run or the attempt ended, in epoch ms of the store's clock. */
  atMs: number;
  slotMs: number | null;
  key: string | null;
  /** The position of this event. Pass it as `after` to receive only later events. */
  cursor: string;
}

/** An event of one type. The event of a success has a result; all other events have an error. */
export type ClusterEventOf<Type extends EventType> = Type extends "run.succeeded"
  ? OfRun & { type: Type; result: Json }
  : OfRun & { type: Type; error: Json };

/** An event of a run anywhere in the cluster. */
export type ClusterEvent = ClusterEventOf<EventType>;

/**
 * Converts a stored event to the form that handlers receive. The result is decoded if this process has the codec's key, else left as
 * stored.
 */
export async function eventOf(
  { xid: _, place, type, result, error, ...run }: StoredEvent,
  codecs: Pick<Codecs, "opened">,
): Promise<ClusterEvent> {
  const told = { ...run, cursor: cursorOf(place) };
  if (type === "run.succeeded") return { ...told, type, result: await codecs.opened(result, run.task) };
  return { ...told, type, error } as ClusterEvent;
}

/** Selects the events that are delivered. */
export interface EventsOf {
  /** Only events of runs of this task. */
  task?: string;
  /** Only events of runs of the tasks in this namespace. */
  namespace?: string;
  /** Begin after the event with this cursor. Default: begin with events from now on. */
  after?: string;
  /** Aborting this signal ends the events. */
  signal?: AbortSignal;
}

export interface EventsOptions extends EventsOf {
  /** The types of events; default: all. */
  types?: readonly EventType[];
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
export type AnyHandler = (event: ClusterEvent, handling: Handling & { tx?: SqlClient }) => unknown;
