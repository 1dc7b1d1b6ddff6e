/** How a command asks a server: bounded waits, pages, and changes that are done once. */
import { randomUUID } from "node:crypto";
import { type CallOptions, type Client, client } from "../../api/client.ts";
import { pause, systemClock } from "../../base/clock.ts";
import { CarillonError, isCarillonError } from "../../base/errors.ts";

export interface ServerChoice {
  url: string;
  token: string | undefined;
}

/** Of a server that does not answer at all; an action may wait until what it recalls is known not to start. */
export const firstAnswerMs = 5_000;
const answerMs = 60_000;
/** A change whose answer was lost is asked for again under its key, so it is done once. */
const againAfterMs = [200, 1_000];
export const pageSize = 200;
const atOnce = 8;

/** A server that sends a stream says something every 15 s. */
const silentMs = 40_000;

/** A client for a person: nothing is waited for without end, and a token goes nowhere else. */
export function patientClient({ url, token }: ServerChoice, signal: AbortSignal, timeoutMs = answerMs): Client {
  const within: typeof fetch = async (input, init = {}) => {
    const given = [signal, ...(init.signal ? [init.signal] : [])];
    if (new Headers(init.headers).get("accept") === "text/event-stream") return watched(input, init, given);
    const ends = AbortSignal.any([...given, AbortSignal.timeout(timeoutMs)]);
    return fetch(input, { ...init, signal: ends, redirect: "error" });
  };
  return client({ server: url, ...(token === undefined ? {} : { token }), fetch: within });
}

/** A stream that ends with an error once it has been silent for too long: a line may break without either side hearing of it. */
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

/** All pages, or as many as it takes for `most` items. */
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

/** What may be seen of the whole cluster alone is left out for whoever may see one namespace of it. */
export async function unlessDenied<Answer>(asking: Promise<Answer>, otherwise: Answer): Promise<Answer> {
  try {
    return await asking;
  } catch (error) {
    if (isCarillonError(error, "ACCESS_DENIED")) return otherwise;
    throw error;
  }
}

/** Each asked for, a few at a time. */
export async function each<Given, Made>(given: readonly Given[], ask: (one: Given) => Promise<Made>): Promise<Made[]> {
  const made: Made[] = [];
  for (let at = 0; at < given.length; at += atOnce)
    made.push(...(await Promise.all(given.slice(at, at + atOnce).map(ask))));
  return made;
}

/** A change: done once, also where its answer is lost. */
export async function once<Made>(ask: (key: CallOptions) => Promise<Made>, key: string = randomUUID()): Promise<Made> {
  for (const waitMs of againAfterMs) {
    try {
      return await ask({ idempotencyKey: key });
    } catch (error) {
      if (!isCarillonError(error, "SERVER_UNREACHABLE") && !isCarillonError(error, "IDEMPOTENCY_BUSY")) throw error;
      await pause(systemClock, waitMs);
    }
  }
  return ask({ idempotencyKey: key });
}

/** A change whose answer has a secret in it, which the server does not keep: where the answer is lost, the change may have been made. */
export async function notAgain<Made>(asking: Promise<Made>, look: string): Promise<Made> {
  try {
    return await asking;
  } catch (error) {
    if (!isCarillonError(error, "SERVER_UNREACHABLE")) throw error;
    throw new CarillonError("SERVER_UNREACHABLE", `${error.message}; it may have been done all the same`, {
      cause: error,
      hint: look,
    });
  }
}

export const why = (reason: string | undefined) => (reason === undefined || reason === "" ? {} : { reason });
