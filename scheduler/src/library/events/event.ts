import type { SqlClient } from "../../base/change.ts";
import type { Json } from "../../base/json.ts";
import { cursorOf, type EventType, type StoredEvent } from "../../store/event-store.ts";
import type { Codecs } from "../payloads/codecs.ts";

interface OfRun {
  runId: number;
  task: string;
  /** The number of the attempt that ended. */
  attempt: number;
  /** When the run or the attempt ended, by the store's clock. */
  atMs: number;
  slotMs: number | null;
  key: string | null;
  /** The position after this event: pass it as `after` to continue from there. */
  cursor: string;
}

/** The event of one type: a success has a result, all others have an error. */
export type ClusterEventOf<Type extends EventType> = Type extends "run.succeeded"
  ? OfRun & { type: Type; result: Json }
  : OfRun & { type: Type; error: Json };

/** An event of a run anywhere in the cluster. */
export type ClusterEvent = ClusterEventOf<EventType>;

/** An event as its handlers get it: with its result decoded, where this process can. */
export async function eventOf(
  { xid: _, place, type, result, error, ...run }: StoredEvent,
  codecs: Pick<Codecs, "opened">,
): Promise<ClusterEvent> {
  const told = { ...run, cursor: cursorOf(place) };
  if (type === "run.succeeded") return { ...told, type, result: await codecs.opened(result, run.task) };
  return { ...told, type, error } as ClusterEvent;
}

/** Selects events. */
export interface EventsOf {
  /** Only events of runs of this task. */
  task?: string;
  /** Only events of runs of the tasks in this namespace. */
  namespace?: string;
  /** Begin after this cursor of an earlier event. Default: now. */
  after?: string;
  /** Once aborted, the events end. */
  signal?: AbortSignal;
}

export interface EventsOptions extends EventsOf {
  /** The types of events; default: all. */
  types?: readonly EventType[];
}

export interface ConsumerOptions extends EventsOf {
  /**
   * Stores the position under this name: one process of the cluster at a time handles the events, each at least once, whichever processes
   * are killed. `after` is used only for a new name.
   */
  name: string;
  /** Handle each event in a transaction on the store's database, which also stores the new position. */
  tx?: boolean;
}

export interface Handling {
  /** Aborts when the events end, or when this process may no longer handle them. */
  signal: AbortSignal;
  /** How often this process has tried to handle the event, from 1. */
  attempt: number;
}

type Handles<Type extends EventType, With = Handling> = (
  event: { [Each in Type]: ClusterEventOf<Each> }[Type],
  handling: With,
) => unknown;

export interface OnEvent {
  /**
   * Calls the handler with each event of this type in the cluster. Resolves once the subscription is complete: no later event is missed.
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
  /** Ends the subscription. Resolves when the handler has settled. */
  close(): Promise<void>;
}

/** A handler of any event. */
export type AnyHandler = (event: ClusterEvent, handling: Handling & { tx?: SqlClient }) => unknown;
