import type { Principal, Reach } from "../access/access.ts";
import type { Answer, Event, Read, RouteId, StreamId } from "../api/contract.ts";

/** One authenticated request. */
export interface Call {
  /** null only on routes with the policy `anyone`. */
  who: Principal | null;
  /** The namespaces in which the caller has the role that the route requires. */
  reach: Reach;
  nowMs: number;
  /** The version that the change is based on; null: any version. */
  ifVersion: number | null;
  /** When the caller's sign-in began; null: the caller uses a token, or is unknown. */
  begunMs: number | null;
  /** When the credential of the request expires. */
  expiresMs: number | null;
  /** The user must add a second factor before any other call. */
  factorNeeded: boolean;
  /** Run numbers that were drawn together with the request's idempotency key; empty without a key. */
  runIds: readonly number[];
  /** Identifies this request across repetitions; derived from the idempotency key. */
  token: string;
  /** The client's address, as far as the server can determine it. */
  address: string;
  /** The client's user agent, cut to a length worth storing. */
  agent: string;
  /** Aborts when the caller has gone, or the server stops. */
  signal: AbortSignal;
  /** The caller's span as a W3C traceparent; absent without tracing. */
  traceparent: string | undefined;
  /** The id of the client's last event, after which the stream resumes. */
  lastEventId: string | undefined;
  /** The browser's sign-in cookie: its value in the request, and a function that sets it; null deletes it. */
  cookie: { present: string | null; set: (value: string | null, maxAgeMs: number) => void };
  /** The browser's proof of an earlier sign-in, as a cookie too: see `known-browser.ts`. */
  browser: { present: string | null; set: (value: string) => void };
}

export type Handler<Id extends RouteId> = (given: Read<Id>, call: Call) => Promise<Answer<Id>>;
/**
 * Each event carries an id, from which a stream that broke off resumes. Refusals are thrown before the stream begins: its first
 * event may be hours away.
 */
export type StreamHandler<Id extends StreamId> = (
  given: Read<Id>,
  call: Call,
) => Promise<AsyncIterable<{ data: Event<Id>; id?: string }>>;

type PlainId = Exclude<RouteId, StreamId>;
export type Handlers = { [Id in PlainId]: Handler<Id> } & { [Id in StreamId]: StreamHandler<Id> };
/** The handlers of some routes. */
export type Some<Ids extends RouteId> = Pick<Handlers, Ids>;
