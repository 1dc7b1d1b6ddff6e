import { type Clock, limitedTo } from "../../base/clock.ts";
import { CarillonError } from "../../base/errors.ts";
import { type Json, readJson } from "../../base/json.ts";
import { limits } from "../../base/limits.ts";
import { type Log, silentLog } from "../../base/log.ts";
import { version } from "../../base/version.ts";
import type { Handler, Run } from "../../run/handler.ts";
import type { HttpTaskOptions } from "../../settings/settings.ts";
import { bodilessMethods, type HttpSpec, headerValue, matchesStatus } from "../../task/http.ts";
import { secretPlaces } from "../../task/names.ts";
import { AllowList } from "./allow-list.ts";
import { type Answer, retryAfterMs, type Sent, send } from "./request.ts";
import { runHeaders, signingKeys } from "./signature.ts";
import { type Resolve, shownUrl, systemResolve, type Target, targetOf } from "./target.ts";

/** The result of an HTTP task's run, as it is stored. */
export interface HttpResult {
  status: number;
  /** The body; parsed if its content type is JSON and it is valid, was not cut and loses no precision, otherwise text. */
  body: Json;
  /** Present if the body was longer than limits.httpBodyBytes; only its start is stored. */
  cut?: true;
}

/** The `cause` of an HTTP_FAILED or HTTP_REFUSED error if a response was received and its status is not one of `okStatuses`. */
export interface HttpFailure {
  status: number;
  /** The beginning of the body. */
  body: string;
}

export interface HttpCallerOptions extends HttpTaskOptions {
  clock: Clock;
  resolve?: Resolve;
  log?: Pick<Log, "warn">;
}

const followed = [301, 302, 303, 307, 308];
const shownBodyLength = 500;

/**
 * Returns a function that creates the worker's handler for an HTTP task.
 * @throws OPTION_INVALID for an entry of `allow` that is neither a host nor an address range, and for invalid signing secrets
 * (see `signingKeys`)
 */
export function httpCaller({
  allow = [],
  clock,
  resolve = systemResolve,
  log = silentLog,
  ...signing
}: HttpCallerOptions) {
  const allowed = new AllowList(allow);
  const keysFor = signingKeys(signing, (message) => log.warn({}, message));

  return (http: HttpSpec): Handler =>
    async (run, payload) => {
      const began = clock.monotonic();
      const called = (signal: AbortSignal) => settled(call(run, payload, http, signal), signal);
      const { answer, target, method } = await limitedTo(clock, http.timeoutMs, run.signal, called, () =>
        tooSlow(http),
      );
      const tookMs = Math.round(clock.monotonic() - began);
      run.log.info(`${method} ${shownUrl(target.url)}: ${answer.status} after ${tookMs} ms`);
      return judged(http, answer, target, method, clock.wall());
    };

  async function call(run: Run, payload: unknown, http: HttpSpec, signal: AbortSignal) {
    let target = await targetOf(new URL(http.url), allowed, resolve);
    const { origin } = target.url;
    let { method } = http;
    let body = bodyOf(http, payload);
    const headers = await withSecrets(http.headers, run);
    for (let hops = 0; ; hops++) {
      // The task's own headers are sent only to the origin of its URL, never to another origin after a redirect.
      const own = target.url.origin === origin ? headers : {};
      const answer = await send(target, sentTo(target.url, method, own, body, run), limits.httpBodyBytes, signal);
      const onward = followed.includes(answer.status) ? locationOf(answer, target.url) : null;
      if (onward === null || hops >= http.redirects) return { answer, target, method };
      target = await targetOf(onward, allowed, resolve);
      signal.throwIfAborted();
      if (answer.status === 303 || (answer.status < 303 && method === "POST")) {
        method = method === "HEAD" ? "HEAD" : "GET";
        body = null;
      }
    }
  }

  function sentTo(url: URL, method: string, own: Record<string, string>, body: Body | null, run: Run): Sent {
    const marks = {
      task: run.task,
      schedule: run.schedule ?? "",
      run: String(run.id),
      slot: run.slot?.toISOString() ?? "",
      attempt: String(run.attempt),
      fence: String(run.fence),
    };
    const bytes = body?.bytes ?? null;
    return {
      method,
      headers: {
        accept: "application/json, */*;q=0.5",
        "user-agent": `carillon/${version}`,
        ...(body === null ? {} : { "content-type": body.type }),
        ...own,
        "accept-encoding": "identity",
        ...runHeaders(
          { method, url, body: bytes },
          marks,
          keysFor(run.task, url.hostname),
          Math.floor(clock.wall() / 1_000),
        ),
      },
      body: bytes,
    };
  }
}

/** Replaces the names of secrets in headers by the secrets, which are read at each attempt so that changes take effect. @throws SECRET_… */
async function withSecrets(headers: Record<string, string>, run: Run): Promise<Record<string, string>> {
  const filled: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    filled[name] = value;
    for (const [place, secret = ""] of value.matchAll(secretPlaces)) {
      const found = await run.secret(secret);
      // A line break in the value would let the secret inject a further header or request.
      if (!headerValue.test(found))
        throw new CarillonError("SECRET_INVALID", `the value of secret ${secret} cannot be sent in a header`, {
          hint: "Use printable ASCII on one line.",
        });
      filled[name] = filled[name].replace(place, () => found);
    }
  }
  return filled;
}

/** Waits for `work` until the signal aborts. A name lookup itself cannot be cancelled, so it may continue afterwards. */
function settled<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

interface Body {
  bytes: Buffer;
  type: string;
}

function bodyOf({ method, body }: HttpSpec, payload: unknown): Body | null {
  if (bodilessMethods.includes(method)) return null;
  if (typeof body === "string") return { bytes: Buffer.from(body), type: "text/plain; charset=utf-8" };
  return { bytes: Buffer.from(JSON.stringify(body ?? payload ?? null)), type: "application/json" };
}

function locationOf({ headers }: Answer, base: URL): URL | null {
  const { location } = headers;
  return typeof location === "string" && URL.canParse(location, base.href) ? new URL(location, base) : null;
}

function judged(http: HttpSpec, answer: Answer, { url }: Target, method: string, wallMs: number): HttpResult {
  const { status, headers, cut } = answer;
  // PostgreSQL's jsonb cannot hold NUL.
  const text = answer.body.toString("utf8").replaceAll("\0", "\ufffd");
  if (matchesStatus(http.okStatuses, status))
    return { status, body: cut ? text : parsed(text, headers["content-type"]), ...(cut ? { cut } : {}) };
  const failure: HttpFailure = { status, body: text.slice(0, shownBodyLength) };
  const what = `${method} ${shownUrl(url)} was answered with ${status}${failure.body === "" ? "" : `: ${failure.body}`}`;
  if (matchesStatus(http.retryStatuses, status)) {
    throw new CarillonError("HTTP_FAILED", what, {
      hint: "The task's retry policy decides on another try.",
      cause: failure,
      retryAfterMs: retryAfterMs(headers["retry-after"], wallMs),
    });
  }
  const onward = followed.includes(status) ? locationOf(answer, url) : null;
  throw new CarillonError("HTTP_REFUSED", onward ? `${what}, a redirect to ${shownUrl(onward)}` : what, {
    hint: onward
      ? "Give the task that URL, or let it follow with `redirects`."
      : "The request itself is at fault, so it is not repeated. `retryStatuses` names what is.",
    cause: failure,
  });
}

function parsed(text: string, type: string | string[] | undefined): Json {
  if (!/^application\/(?:[\w.+-]+\+)?json\b/i.test(String(type ?? ""))) return text;
  try {
    return readJson(text, "the answer") as Json;
  } catch {
    // The body is stored as text if it is not valid JSON, or contains a number that would lose precision.
    return text;
  }
}

const tooSlow = ({ method, url, timeoutMs }: HttpSpec) =>
  new CarillonError("HTTP_FAILED", `${method} ${shownUrl(new URL(url))}: no whole answer within ${timeoutMs} ms`, {
    hint: "Raise the task's http.timeout, or let the receiver answer at once and work afterwards.",
  });
