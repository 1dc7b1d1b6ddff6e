import type { Principal, Reach } from "../access/access.ts";
import type { Answer, Event, Read, RouteId, StreamId } from "../api/contract.ts";

/** One request, once it is known whose it is and what it asks. */
export interface Call {
  /** null only where the policy is `anyone`. */
  who: Principal | null;
  /** Where who asks has the role that the route asks for. */
  reach: Reach;
  nowMs: number;
  /** The version that a change is made from; null: whatever is there. */
  ifVersion: number | null;
  /** When that which showed who asks ends. */
  expiresMs: number | null;
  /** The user who asks must add a second factor first. */
  factorNeeded: boolean;
  /** Numbers of runs that were drawn with the request's idempotency key; without one, none. */
  runIds: readonly number[];
  /** Of the idempotency key: stands for this request, however often it is made. */
  token: string;
  /** Whom it came from, as far as the server can tell. */
  address: string;
  /** What the browser or program calls itself, cut to what is worth keeping. */
  agent: string;
  /** Aborts when the caller has gone, or the server stops. */
  signal: AbortSignal;
  /** The span of whoever asks, as W3C's traceparent writes it, where they trace. */
  traceparent: string | undefined;
  /** Where a stream goes on. */
  lastEventId: string | undefined;
  /** The browser's sign-in: read, and set (null takes it away). */
  cookie: { present: string | null; set: (value: string | null, maxAgeMs: number) => void };
  /** The browser's proof that it signed in before, likewise: see `known-browser.ts`. */
  browser: { present: string | null; set: (value: string) => void };
}

export type Handler<Id extends RouteId> = (given: Read<Id>, call: Call) => Promise<Answer<Id>>;
/**
 * With the id by which a stream that broke off goes on behind the event. What refuses it is thrown before there is one: its
 * first event may be hours away.
 */
export type StreamHandler<Id extends StreamId> = (
  given: Read<Id>,
  call: Call,
) => Promise<AsyncIterable<{ data: Event<Id>; id?: string }>>;

type PlainId = Exclude<RouteId, StreamId>;
export type Handlers = { [Id in PlainId]: Handler<Id> } & { [Id in StreamId]: StreamHandler<Id> };
/** The handlers of some routes. */
export type Some<Ids extends RouteId> = Pick<Handlers, Ids>;
