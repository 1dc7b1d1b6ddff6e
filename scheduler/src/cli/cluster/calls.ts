/** The client with which commands call a server: waits are limited, pages are joined, and repeated requests cannot make a change twice. */
import { randomUUID } from "node:crypto";
import { type CallOptions, type Client, client } from "../../api/client.ts";
import { isKept, type RouteShape } from "../../api/contract/route.ts";
import { routeIds, shapeOf } from "../../api/contract.ts";
import { pause, systemClock } from "../../base/clock.ts";
import { CarillonError, isCarillonError } from "../../base/errors.ts";

export interface ServerChoice {
  url: string;
  token: string | undefined;
}

/**
 * The time limit in ms for the first answer of a server. `answerMs` is longer, because an action may wait until the runs that it recalls
 * can no longer start.
 */
export const firstAnswerMs = 5_000;
const answerMs = 60_000;
/** A change whose answer was lost is repeated after these delays in ms, with the same idempotency key, so that it is not made twice. */
export const againAfterMs = [200, 1_000];
export const pageSize = 200;
const atOnce = 8;

/** A stream without data for this many ms counts as broken, because a server sends something at least every 15 s. */
const silentMs = 40_000;

/**
 * Creates a client for commands. Every wait has a limit, a redirect is refused so that the token goes only to the named server, and no
 * change is made twice.
 */
export function patientClient({ url, token }: ServerChoice, signal: AbortSignal, timeoutMs = answerMs): Client {
  const within: typeof fetch = async (input, init = {}) => {
    const given = [signal, ...(init.signal ? [init.signal] : [])];
    if (new Headers(init.headers).get("accept") === "text/event-stream") return watched(input, init, given);
    const ends = AbortSignal.any([...given, AbortSignal.timeout(timeoutMs)]);
    return fetch(input, { ...init, signal: ends, redirect: "error" });
  };
  return doneOnce(client({ server: url, ...(token === undefined ? {} : { token }), fetch: within }));
}

/**
 * Opens a stream that fails if the answer does not begin within `firstAnswerMs`, or after `silentMs` without data. Otherwise a connection
 * that broke unnoticed would be waited for indefinitely.
 */
async function watched(
  input: Parameters<typeof fetch>[0],
  init: RequestInit,
  signals: AbortSignal[],
): Promise<Response> {
  const silent = new AbortController();
  const end = () => silent.abort(new Error(`nothing was heard for ${silentMs / 1_000} s`));
  let timer = setTimeout(end, firstAnswerMs);
  const heard = () => {
    clearTimeout(timer);
    timer = setTimeout(end, silentMs).unref();
  };
  try {
    const response = await fetch(input, {
      ...init,
      signal: AbortSignal.any([...signals, silent.signal]),
      redirect: "error",
    });
    heard();
    const watch = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        heard();
        controller.enqueue(chunk);
      },
      flush: () => clearTimeout(timer),
    });
    const { status, headers, body } = response;
    return new Response(body?.pipeThrough(watch) ?? null, { status, headers });
  } catch (error) {
    clearTimeout(timer);
    throw error;
  }
}

/** Returns the items of all pages, but at most `most`. */
export async function pages<Item>(
  ask: (page: { limit: number; cursor?: string }) => Promise<{ items: Item[]; next: string | null }>,
  most = Number.POSITIVE_INFINITY,
): Promise<Item[]> {
  const found: Item[] = [];
  let cursor: string | undefined;
  do {
    const limit = Math.max(1, Math.min(pageSize, most - found.length));
    const { items, next } = await ask({ limit, ...(cursor === undefined ? {} : { cursor }) });
    found.push(...items);
    cursor = next ?? undefined;
  } while (cursor !== undefined && found.length < most);
  return found.slice(0, most);
}

/** Returns `otherwise` if the server denies access, so that a list omits what the user may not see. */
export async function unlessDenied<Answer>(asking: Promise<Answer>, otherwise: Answer): Promise<Answer> {
  try {
    return await asking;
  } catch (error) {
    if (isCarillonError(error, "ACCESS_DENIED")) return otherwise;
    throw error;
  }
}

/** Calls `ask` for each item, up to `atOnce` items at a time, and returns the results in order. */
export async function each<Given, Made>(given: readonly Given[], ask: (one: Given) => Promise<Made>): Promise<Made[]> {
  const made: Made[] = [];
  for (let at = 0; at < given.length; at += atOnce)
    made.push(...(await Promise.all(given.slice(at, at + atOnce).map(ask))));
  return made;
}

type Ask = (given?: object, options?: CallOptions) => Promise<unknown>;

/**
 * Wraps a client so that it repeats a change whose answer was lost, with the same idempotency key. If all tries fail, or if a
 * read fails after a change, the error says what may have been done and names the command that shows the result.
 */
function doneOnce(api: Client): Client {
  let changed: RouteShape | undefined;
  const calls = routeIds.map((routeId) => {
    const shape = shapeOf(routeId);
    const ask = api[routeId] as Ask;
    if (shape.event) return [routeId, ask];
    const read: Ask = (given, options) =>
      ask(given, options).catch((error: unknown) => {
        throw changed && isLost(error) ? withLook(error, "what was to be changed is done", lookAt(changed)) : error;
      });
    const change: Ask = async (given, options) => {
      const made = await askAgain(ask, shape, given, { idempotencyKey: randomUUID(), ...options });
      changed = shape;
      return made;
    };
    return [routeId, isKept(shape) ? change : read];
  });
  return Object.fromEntries(calls) as Client;
}

async function askAgain(ask: Ask, shape: RouteShape, given: object | undefined, options: CallOptions) {
  // An answer with a secret is not stored by the server, so it cannot be repeated; such a change is tried only once.
  const waits = shape.secret ? [] : againAfterMs;
  for (let tries = 0; ; tries++) {
    try {
      return await ask(given, options);
    } catch (error) {
      if (!isLost(error)) throw error;
      const waitMs = waits[tries];
      if (waitMs === undefined) throw mayBeDone(error, lookAt(shape));
      await pause(systemClock, waitMs);
    }
  }
}

/** True for an error that leaves open whether the server executed the request. */
const isLost = (error: unknown): error is CarillonError =>
  isCarillonError(error, "SERVER_UNREACHABLE") || isCarillonError(error, "IDEMPOTENCY_BUSY");

/** The command that shows the result of a change, by the path segment after /v1. */
const looks: Readonly<Record<string, string>> = {
  nodes: "carillon nodes list",
  tasks: "carillon tasks show NAME, and for a run carillon runs list",
  bundles: "carillon diff FILE",
  runs: "carillon runs show RUN",
  operations: "carillon operations list",
  calendars: "carillon calendars list",
  groups: "carillon groups list",
  quotas: "carillon quotas list",
  users: "carillon users list",
  tokens: "carillon tokens list",
  "worker-keys": "carillon keys list",
  secrets: "carillon secrets list",
  "secrets-rewrap": "carillon secrets list",
  alarms: "carillon alarms",
  "alarm-silences": "carillon alarms silences",
  "alarm-rules": "carillon alarms rules list",
  hooks: "carillon hooks list",
  "event-consumers": "carillon events list",
};

function lookAt({ path, secret }: RouteShape): string {
  const look = looks[path.split("/")[2] ?? ""];
  const where = look === undefined ? "Look whether it was done before you ask again." : `Look with ${look}.`;
  return secret
    ? `${where} A secret that nobody has seen is of no use: revoke what was made, and make another.`
    : where;
}

const withLook = (cause: CarillonError, what: string, hint: string): CarillonError =>
  new CarillonError(cause.code, `${cause.message}; ${what}`, { cause, hint, path: cause.path });

/**
 * If the answer to a change was lost, adds to the error that the change may have been made. @param look the command that shows the result
 */
export const mayBeDone = (error: unknown, look: string): unknown =>
  isLost(error) ? withLook(error, "it may have been done all the same", look) : error;

export const why = (reason: string | undefined) => (reason === undefined || reason === "" ? {} : { reason });
