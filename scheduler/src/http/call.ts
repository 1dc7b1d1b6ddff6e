import type { Principal, Reach } from "../access/access.ts";
import type { Answer, Event, Read, RouteId, StreamId } from "../api/contract.ts";

/** The context of one request, which handlers get. */
export interface Call {
  /** The authenticated caller; null only on routes with the policy `anyone`. */
  who: Principal | null;
  /** The namespaces in which the caller has the role that the route requires. */
  reach: Reach;
  nowMs: number;
  /** The version on which the change is based (If-Match); null: any version. */
  ifVersion: number | null;
  /** When the caller's sign-in began, in epoch ms; null if the caller uses a token or is unknown. */
  begunMs: number | null;
  /** When the request's credential expires, in epoch ms; null if the caller is unknown. */
  expiresMs: number | null;
  /** True if the user must add a second factor before any other call. */
  factorNeeded: boolean;
  /** Run ids that were reserved together with the request's idempotency key; empty without a key. */
  runIds: readonly number[];
  /**
   * A text derived from the idempotency key, so that it is equal for repetitions of the request; random without a key; "" for a
   * GET request.
   */
  token: string;
  /** The client's address, as far as the server can determine it. */
  address: string;
  /** The client's user agent, shortened for storage. */
  agent: string;
  /** Aborts when the server stops; for a stream, also when the client disconnects. */
  signal: AbortSignal;
  /** The client's span as a W3C traceparent; undefined if the request has none. */
  traceparent: string | undefined;
  /** The id of the last event that the client received (Last-Event-ID), after which a stream resumes. */
  lastEventId: string | undefined;
  /** The sign-in cookie: its value in the request, and a function that sets it in the answer; the value null deletes it. */
  cookie: { present: string | null; set: (value: string | null, maxAgeMs: number) => void };
  /** A cookie that proves an earlier sign-in with this browser; see `known-browser.ts`. */
  browser: { present: string | null; set: (value: string) => void };
}

export type Handler<Id extends RouteId> = (given: Read<Id>, call: Call) => Promise<Answer<Id>>;
/**
 * Handles a route that answers with an event stream. A client resumes a broken stream after the last event `id` that it received. The
 * promise resolves before the first event, which may be hours away, so that a refusal can be answered as an error.
 */
export type StreamHandler<Id extends StreamId> = (
  given: Read<Id>,
  call: Call,
) => Promise<AsyncIterable<{ data: Event<Id>; id?: string }>>;

type PlainId = Exclude<RouteId, StreamId>;
export type Handlers = { [Id in PlainId]: Handler<Id> } & { [Id in StreamId]: StreamHandler<Id> };
/** The handlers of some routes. */
export type Some<Ids extends RouteId> = Pick<Handlers, Ids>;
