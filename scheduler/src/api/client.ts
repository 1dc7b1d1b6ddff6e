/**
 * carillon/client: a client of the HTTP API, with types from the same contract with which the server validates requests.
 *
 *   const api = client({ server: "https://carillon.example", token: process.env.CARILLON_TOKEN });
 *   const { items } = await api.listRuns({ task: "settle", state: ["failed"] });
 *   await api.pauseTask({ task: "settle", reason: "the bank is closed" });
 */

import { CarillonError, type ErrorCode, errorCodes, isCarillonError, messageOf } from "../base/errors.ts";
import { problemWords } from "../run/problem-words.ts";
import { type RouteShape, writes } from "./contract/route.ts";
import type { Answer, Event, Given, RouteId, StreamId } from "./contract.ts";
import { routeIds, shapeOf } from "./contract.ts";
import { EventReader } from "./event-reader.ts";

export interface ClientOptions {
  /** The server's URL; in a browser it defaults to the page's own origin. */
  server?: string;
  /** An API token; without it the browser's sign-in cookie authenticates the requests. */
  token?: string;
  /** Default: the runtime's `fetch`. */
  fetch?: typeof fetch;
}

export interface CallOptions {
  /** The server executes only one of several requests with the same key. */
  idempotencyKey?: string;
  /** The server makes the change only if this is the current version; default: any version. */
  ifVersion?: number;
  signal?: AbortSignal;
}

type Call<Id extends RouteId> =
  Record<never, never> extends Given<Id>
    ? (given?: Given<Id>, options?: CallOptions) => Promise<Answer<Id>>
    : (given: Given<Id>, options?: CallOptions) => Promise<Answer<Id>>;

/** When the connection breaks, the iteration throws; to continue, call again with `after`, or start again without it. */
type Stream<Id extends StreamId> =
  Record<never, never> extends Given<Id>
    ? (given?: Given<Id>, options?: Pick<CallOptions, "signal">) => AsyncIterable<Event<Id>>
    : (given: Given<Id>, options?: Pick<CallOptions, "signal">) => AsyncIterable<Event<Id>>;

export type Client = { [Id in Exclude<RouteId, StreamId>]: Call<Id> } & { [Id in StreamId]: Stream<Id> };

/**
 * Creates a client. Its methods reject with a CarillonError: the server's, SERVER_UNREACHABLE, or OPTION_INVALID or
 * REQUEST_INVALID for a token or a path value that cannot be sent. After an abort they reject with the signal's reason.
 */
export function client(options: ClientOptions = {}): Client {
  const calls = routeIds.map((routeId) => {
    const shape = shapeOf(routeId);
    const call = shape.event
      ? (given: object = {}, more: CallOptions = {}) => follow(options, shape, given, more)
      : (given: object = {}, more: CallOptions = {}) => ask(options, shape, given, more);
    return [routeId, call] as const;
  });
  return Object.fromEntries(calls) as unknown as Client;
}

async function ask(options: ClientOptions, shape: RouteShape, given: object, more: CallOptions): Promise<unknown> {
  const response = await send(options, shape, given, more);
  if (response.status === 204) return undefined;
  const text = await wholeText(response, options, more);
  return shape.media ? text : readJson(text, options);
}

/** @throws SERVER_UNREACHABLE if the answer breaks off; the server may or may not have made the change */
async function wholeText(response: Response, { server }: ClientOptions, { signal }: CallOptions): Promise<string> {
  try {
    return await response.text();
  } catch (cause) {
    if (signal?.aborted) throw cause;
    throw brokenOff(server, cause);
  }
}

const brokenOff = (server: string | undefined, cause: unknown) =>
  new CarillonError("SERVER_UNREACHABLE", `the answer of ${server || "the server"} broke off: ${messageOf(cause)}`, {
    cause,
    hint: "Ask again; a change under the same idempotency key is done once.",
  });

/** @throws SERVER_UNREACHABLE if the answer is not JSON, because something other than the server answered, such as a proxy */
function readJson(text: string, { server }: ClientOptions): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new CarillonError("SERVER_UNREACHABLE", `what answers at ${server || "the server"} is no Carillon: no JSON`, {
      cause,
      hint: "Check the URL, and what stands between here and there.",
    });
  }
}

async function* follow(options: ClientOptions, shape: RouteShape, given: object, more: CallOptions) {
  const response = await send(options, shape, given, more);
  if (!response.body) return;
  const reader = new EventReader();
  const decoder = new TextDecoder();
  try {
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>)
      for (const data of reader.read(decoder.decode(chunk, { stream: true }))) yield readJson(data, options) as never;
  } catch (cause) {
    if (more.signal?.aborted || isCarillonError(cause)) throw cause;
    throw brokenOff(options.server, cause);
  }
}

/**
 * Sends a request and returns the response. @throws OPTION_INVALID, REQUEST_INVALID; SERVER_UNREACHABLE without an answer; for
 * a status other than 2xx the server's error
 */
async function send(
  { server = "", token, fetch: ask = fetch }: ClientOptions,
  shape: RouteShape,
  given: object,
  { idempotencyKey, ifVersion, signal }: CallOptions,
): Promise<Response> {
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token))
    throw new CarillonError(
      "OPTION_INVALID",
      "the token has a space, a line break or the like in it, as no token has",
      {
        path: "token",
        hint: "Give it as it was shown, all of it and nothing else: CARILLON_TOKEN=ct_….",
      },
    );
  // The client shows the server's URL in errors, and fetch refuses a URL with a password with a message that contains the password.
  if (server.includes("@"))
    throw new CarillonError("OPTION_INVALID", "the server's URL has a user or a password in it", {
      path: "server",
      hint: "Leave them out, and give a token.",
    });
  const { path, query, body } = partsOf(shape, given as Record<string, unknown>);
  const headers: Record<string, string> = {
    accept: shape.event ? "text/event-stream" : (shape.media ?? "application/json"),
  };
  if (token !== undefined) headers.authorization = `Bearer ${token}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  if (idempotencyKey !== undefined && writes(shape)) headers["idempotency-key"] = idempotencyKey;
  if (ifVersion !== undefined) headers["if-match"] = `"${ifVersion}"`;
  else if (shape.etag === "demands") headers["if-match"] = "*";
  let response: Response;
  try {
    response = await ask(`${server.replace(/\/$/, "")}${path}${query}`, {
      method: shape.method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal ? { signal } : {}),
    });
  } catch (cause) {
    if (signal?.aborted) throw cause;
    throw new CarillonError("SERVER_UNREACHABLE", `no answer from ${server || "the server"}: ${messageOf(cause)}`, {
      cause,
      hint: "Check the URL, and that a node listens there.",
    });
  }
  if (response.ok) return response;
  throw refusal(response, await wholeText(response, { server }, { signal }));
}

/** Splits the given fields into path, query and body. */
export function partsOf(shape: RouteShape, given: Record<string, unknown>) {
  const query = new URLSearchParams();
  const body: Record<string, unknown> = {};
  const places: Record<string, string> = {};
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined) continue;
    if (shape.params && name in shape.params.shape) places[name] = placed(name, String(value));
    else if (shape.query && name in shape.query.shape)
      for (const one of [value].flat()) query.append(name, String(one));
    else body[name] = value;
  }
  const path = shape.path.replace(/\{(\w+)\}/g, (_, name: string) => places[name] ?? "");
  const text = query.toString();
  return { path, query: text === "" ? "" : `?${text}`, body: shape.body ? body : undefined };
}

/** Encodes a value for the path. @throws REQUEST_INVALID for "", "." and "..", with which `/v1/tasks/../runs` would become `/v1/runs` */
function placed(name: string, value: string): string {
  if (!/^\.{0,2}$/.test(value)) return encodeURIComponent(value);
  throw new CarillonError("REQUEST_INVALID", `${name} cannot be ${JSON.stringify(value)}`, {
    hint: "Nothing has such a name.",
    path: name,
  });
}

function refusal(response: Response, text: string): CarillonError {
  const { code = "", detail, hint = "", path = "" } = problemWords(text);
  const known: ErrorCode = Object.hasOwn(errorCodes, code) ? (code as ErrorCode) : "SERVER_UNREACHABLE";
  const after = Number(response.headers.get("retry-after"));
  return new CarillonError(known, detail ?? `the server answered ${response.status}`, {
    hint,
    path,
    ...(after > 0 ? { retryAfterMs: after * 1_000 } : {}),
  });
}
