/** The client of the HTTP API of the page's own server: typed by the API contract, authenticated by the sign-in's cookie. */
import routes from "virtual:carillon-routes";
import type { Answer, Event, Given, RouteId, StreamId } from "carillon/contract";
import { EventReader } from "carillon/events";
import { basePath, serverUrl } from "./base.ts";
import { newKey } from "./keys.ts";
import { beginRead } from "./reads.ts";

export type { Answer, Event, Given };
export type PlainId = Exclude<RouteId, StreamId>;

/** The error for a request that the server refused, or did not answer (status 0). */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly code: string;
  readonly status: number;
  readonly hint: string;
  readonly retryAfterMs: number | null;
  /** The path of the invalid field in the request, such as "retry.attempts"; "" if the error is not about one field. */
  readonly path: string;

  constructor(
    code: string,
    status: number,
    message: string,
    { hint = "", retryAfterMs = null, path = "" }: { hint?: string; retryAfterMs?: number | null; path?: string } = {},
  ) {
    super(message);
    this.code = code;
    this.status = status;
    this.hint = hint;
    this.retryAfterMs = retryAfterMs;
    this.path = path;
  }
}

export interface CallOptions {
  signal?: AbortSignal;
  /** The version on which a change is based. */
  ifVersion?: number;
  /** The idempotency key: requests with the same key are carried out once. */
  key?: string;
}

/** Routes that do not show whether the server can read its store: the server may answer them without its store. */
const withoutStore: readonly string[] = ["getMe", "howToSignIn"];

/** @throws Refusal if the server refuses or does not answer; the abort error if `signal` aborts */
export async function call<Id extends PlainId>(id: Id, given: Given<Id>, options?: CallOptions): Promise<Answer<Id>>;
// The implementation has loose types: TypeScript cannot represent the union of all routes' parameters.
export async function call(id: PlainId, given: object, options: CallOptions = {}): Promise<unknown> {
  const end = routes[id]?.method === "GET" && !withoutStore.includes(id) ? beginRead() : undefined;
  try {
    const response = await send(id, given as Record<string, unknown>, options, "application/json");
    const answer: unknown = response.status === 204 ? undefined : await response.json();
    end?.("answered");
    return answer;
  } catch (error) {
    end?.(isAway(error) ? "failed" : "neither");
    throw error;
  }
}

/**
 * Reads an event stream until the server ends the stream.
 * @param tell called for each event
 * @param opened called once the server has accepted the request
 * @param heard called whenever bytes arrive, including keep-alive comments
 * @throws Refusal if the server refuses the request or the connection breaks; the abort error if `signal` aborts
 */
export async function follow<Id extends StreamId>(
  id: Id,
  given: Given<Id>,
  tell: (event: Event<Id>) => void,
  { signal, opened, heard }: { signal: AbortSignal; opened?: () => void; heard?: () => void },
): Promise<void> {
  const response = await send(id, given as Record<string, unknown>, { signal }, "text/event-stream");
  opened?.();
  const body = response.body?.getReader();
  if (!body) return;
  const reader = new EventReader();
  const decoder = new TextDecoder();
  for (;;) {
    const { done, value } = await body.read().catch((error: unknown) => {
      if (signal.aborted) throw error;
      throw unreachable(error);
    });
    if (done) return;
    heard?.();
    for (const data of reader.read(decoder.decode(value, { stream: true }))) tell(JSON.parse(data) as Event<Id>);
  }
}

/** Returns the route's path with the parameters of path and query filled in, and the parameters of the body. */
function requestOf(id: string, given: Record<string, unknown>) {
  const shape = routes[id];
  if (!shape) throw new Error(`the contract has no route ${id}`);
  const query = new URLSearchParams();
  const body: Record<string, unknown> = {};
  let path = shape.path;
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined) continue;
    if (path.includes(`{${name}}`)) path = path.replace(`{${name}}`, encodeURIComponent(String(value)));
    else if (shape.query.includes(name)) for (const one of [value].flat()) query.append(name, String(one));
    else body[name] = value;
  }
  const text = query.toString();
  return { shape, path: text === "" ? path : `${path}?${text}`, body };
}

/** Returns the command that reads the same from a shell. The token is a variable of the shell, never the page's own sign-in. */
export function curlOf<Id extends PlainId>(id: Id, given: Given<Id>): string {
  const { path } = requestOf(id, given as Record<string, unknown>);
  // A single quote in the path would end the shell's quotation, and `encodeURIComponent` leaves it as it is.
  const url = `${serverUrl}${path}`.replaceAll("'", "%27");
  return `curl -H "Authorization: Bearer $CARILLON_TOKEN" '${url}'`;
}

async function send(
  id: string,
  given: Record<string, unknown>,
  { signal, ifVersion, key }: CallOptions,
  accept: string,
): Promise<Response> {
  const { shape, path, body } = requestOf(id, given);
  const headers: Record<string, string> = { accept };
  if (shape.body) headers["content-type"] = "application/json";
  if (shape.method !== "GET" && shape.policy !== "anyone") headers["idempotency-key"] = key ?? newKey();
  if (shape.etag) headers["if-match"] = ifVersion === undefined ? "*" : `"${ifVersion}"`;
  let response: Response;
  try {
    response = await fetch(`${basePath}${path}`, {
      method: shape.method,
      headers,
      credentials: "same-origin",
      cache: "no-store",
      ...(shape.body ? { body: JSON.stringify(body) } : {}),
      ...(signal ? { signal } : {}),
    });
  } catch (cause) {
    if (signal?.aborted) throw cause;
    throw unreachable(cause);
  }
  if (response.ok) return response;
  throw await refusalOf(response);
}

const unreachable = (cause: unknown) =>
  new Refusal("SERVER_UNREACHABLE", 0, cause instanceof Error ? cause.message : String(cause));

async function refusalOf(response: Response): Promise<Refusal> {
  const text = await response.text();
  let problem: { code?: string; detail?: string; hint?: string; path?: string } = {};
  try {
    problem = JSON.parse(text) as typeof problem;
  } catch {
    // The body is not JSON, for example a proxy's error page: only the HTTP status and the header `retry-after` are used.
  }
  const { code = "SERVER_UNREACHABLE", detail = `${response.status} ${response.statusText}`, hint = "" } = problem;
  const after = Number(response.headers.get("retry-after"));
  return new Refusal(code, response.status, detail, {
    hint,
    retryAfterMs: after > 0 ? after * 1_000 : null,
    path: problem.path,
  });
}

/** True if the request may have been carried out despite the error: the answer was missing or incomplete, or the server failed. */
export const isUnsure = (error: unknown): boolean =>
  !(error instanceof Refusal) || error.status === 0 || error.status >= 500;

export const isRefusal = (error: unknown, code?: string): error is Refusal =>
  error instanceof Refusal && (code === undefined || error.code === code);

/** True if the server, or its store, cannot be reached at the moment: the same read may succeed soon. */
export const isAway = (error: unknown): boolean =>
  isRefusal(error) &&
  (["SERVER_UNREACHABLE", "SERVER_BUSY", "STOPPED"].includes(error.code) || error.code.startsWith("STORE_"));
