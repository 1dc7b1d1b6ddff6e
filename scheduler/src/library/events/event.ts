import type { SqlClient } from "../../base/change.ts";
import type { Json } from "../../base/json.ts";
import { cursorOf, type EventType, type StoredEvent } from "../../store/event-store.ts";
import type { Codecs } from "../payloads/codecs.ts";

interface OfRun {
  runId: number;
  task: string;
  /** The number of the try that ended. */
  attempt: number;
  /** When the run, or the try, ended, by the store's clock. */
  atMs: number;
  slotMs: number | null;
  key: string | null;
  /** The place behind this event: pass it as `after` to go on from there. */
  cursor: string;
}

/** The event of one type: a success has a result, all others have an error. */
export type ClusterEventOf<Type extends EventType> = Type extends "run.succeeded"
  ? OfRun & { type: Type; result: Json }
  : OfRun & { type: Type; error: Json };

/** What happened to a run somewhere in the cluster. */
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

/** Which events. */
export interface EventsOf {
  /** Only of runs of this task. */
  task?: string;
  /** Only of runs of the tasks in this namespace. */
  namespace?: string;
  /** Begin behind this cursor of an event. Default: now. */
  after?: string;
  /** Once aborted, the events end. */
  signal?: AbortSignal;
}

export interface EventsOptions extends EventsOf {
  /** Default: all. */
  types?: readonly EventType[];
}

export interface ConsumerOptions extends EventsOf {
  /**
   * Keeps the place in the store under this name: one process of the cluster at a time handles its events, each at least once, whatever
   * is killed. `after` counts only for a new name.
   */
  name: string;
  /** Handle each event in a transaction on the store's database, in which the place moves too. */
  tx?: boolean;
}

export interface Handling {
  /** Aborts when the events end, or this process may not handle them any more. */
  signal: AbortSignal;
  /** From 1: how often this process has tried to handle the event. */
  attempt: number;
}

type Handles<Type extends EventType, With = Handling> = (
  event: { [Each in Type]: ClusterEventOf<Each> }[Type],
  handling: With,
) => unknown;

export interface OnEvent {
  /**
   * Calls the handler with each event of the cluster of this type. Resolves once no later event is missed.
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
  /** Ends it. Resolves when the handler has settled. */
  close(): Promise<void>;
}

/** A handler of any event. */
export type AnyHandler = (event: ClusterEvent, handling: Handling & { tx?: SqlClient }) => unknown;
