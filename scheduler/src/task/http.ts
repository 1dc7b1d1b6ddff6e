/**
 * The part of a task's definition for an HTTP task: which URL is called and how its answer is judged. This module is pure;
 * executors/http/ makes the call.
 */
import type { Duration } from "../base/duration.ts";
import { within } from "../base/errors.ts";
import type { Json } from "../base/json.ts";
import { limits } from "../base/limits.ts";
import { choice, count, duration, inner, isObject, json, type Kind, object, wrong } from "./kinds/kinds.ts";
import { checkSecretName, secretPlaces } from "./names.ts";

/** A status code, or a class of status codes such as "5xx". */
export type StatusPattern = number | `${1 | 2 | 3 | 4 | 5}xx`;

export interface HttpOptions {
  /** An http: or https: URL that contains no user and no password. */
  url: string;
  /** The method of the request; default "POST". */
  method?: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";
  /**
   * Headers of the request; they are sent only to the URL's own origin. All who can read tasks can read them in the store, so write
   * {{secret:NAME}} in place of a secret value.
   */
  headers?: Record<string, string>;
  /**
   * The body. A string is sent unchanged, any other value as JSON. Default: the run's payload as JSON; GET, HEAD and DELETE send no body.
   */
  body?: unknown;
  /** The time limit of one request, including the body of the answer; default "30s". */
  timeout?: Duration;
  /** Status codes that count as success; default ["2xx"]. */
  okStatuses?: StatusPattern[];
  /** Status codes after which the retry policy applies; default [408, 429, "5xx"]. After any other code the run fails at once. */
  retryStatuses?: StatusPattern[];
  /** The most redirects that are followed, each only to a host that the worker may call. With the default 0 a redirect is a failure. */
  redirects?: number;
}

/** The options in the stored form: complete, plain JSON. */
export interface HttpSpec {
  url: string;
  method: NonNullable<HttpOptions["method"]>;
  headers: Record<string, string>;
  body?: Json;
  timeoutMs: number;
  okStatuses: StatusPattern[];
  retryStatuses: StatusPattern[];
  redirects: number;
}

const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] as const;
export const bodilessMethods: readonly string[] = ["GET", "HEAD", "DELETE"];
const tokenPattern = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Names of headers that only the worker sets: for the framing of the request, its target, and the data of the run. */
const ownHeaders =
  /^(?:host|content-length|transfer-encoding|connection|keep-alive|upgrade|te|trailer|expect|accept-encoding|content-digest|signature|signature-input|proxy-.*|carillon-.*)$/i;
/** A header's value may have visible ASCII characters, spaces and tabs. */
export const headerValue = /^[\t\x20-\x7e]*$/;
const mostHeaders = 50;
const mostStatuses = 100;
const mostRedirects = 5;

export const matchesStatus = (patterns: readonly StatusPattern[], status: number): boolean =>
  patterns.some((pattern) => pattern === status || pattern === `${Math.floor(status / 100)}xx`);

const url: Kind<string> = {
  shape: { is: "text", longest: limits.urlLength, isName: false },
  hint: `Give a whole one, at most ${limits.urlLength} characters: "https://host/path".`,
  read(given, place) {
    const text = typeof given === "string" ? given : "";
    if (text.length > limits.urlLength || !URL.canParse(text)) throw wrong(place, " is no URL", this.hint);
    const parsed = new URL(text);
    if (parsed.protocol !== "http:" && parsed.protocol !== "https:")
      throw wrong(place, ` cannot begin with ${parsed.protocol}`, "Use http: or https:.");
    if (parsed.username !== "" || parsed.password !== "")
      throw wrong(
        place,
        " holds a user or password, which logs and lists would show",
        "Let the receiver check the signature, or put an Authorization header into `headers`.",
      );
    parsed.hash = "";
    return parsed.href;
  },
  write: (kept) => kept,
};

const headers: Kind<Record<string, string>> = {
  shape: { is: "texts" },
  hint: 'For example { "X-Tenant": "eu" }.',
  read(given, place) {
    if (!isObject(given)) throw wrong(place, " must be an object of texts", this.hint);
    const entries = Object.entries(given);
    if (entries.length > mostHeaders) throw wrong(place, " are too many", `Give at most ${mostHeaders}.`);
    for (const [name, value] of entries) {
      if (!tokenPattern.test(name) || ownHeaders.test(name))
        throw wrong(
          place,
          ` cannot hold ${JSON.stringify(name)}`,
          "It is no header's name, or one that the worker sets.",
        );
      // Line breaks are refused, because with one in a value the task could add another header, or another request.
      if (typeof value !== "string" || !headerValue.test(value) || value.length > limits.urlLength)
        throw wrong(place, `: the value of ${name} cannot be sent`, "Use printable ASCII on one line.");
      within(place.path, () => {
        for (const [, secret = ""] of value.matchAll(secretPlaces)) checkSecretName(secret);
      });
    }
    return Object.fromEntries(entries.map(([name, value]) => [name.toLowerCase(), value as string]));
  },
  write: (kept) => kept,
};

const isStatus = (status: unknown): status is StatusPattern =>
  (Number.isInteger(status) && (status as number) >= 200 && (status as number) <= 599) ||
  (typeof status === "string" && /^[2-5]xx$/.test(status));

const statuses: Kind<StatusPattern[]> = {
  shape: {
    is: "list",
    of: {
      is: "either",
      of: [
        { is: "count", least: 200, most: 599 },
        { is: "choice", values: ["2xx", "3xx", "4xx", "5xx"] },
      ],
    },
    most: mostStatuses,
  },
  hint: 'For example [200, 404, "5xx"].',
  read(given, place) {
    if (Array.isArray(given) && given.length > 0 && given.length <= mostStatuses && Array.from(given).every(isStatus))
      return [...given];
    throw wrong(place, " must be a list of statuses", this.hint);
  },
  write: (kept) => kept,
};

export const httpKind = object<HttpSpec>(
  {
    url: { kind: url, required: true, description: "An http: or https: URL, without user and password." },
    method: { kind: choice(methods), usual: "POST", description: "The request's method." },
    headers: {
      kind: headers,
      usual: {},
      description:
        "Sent to the URL's own origin only. Everyone who can read the task can read them: write `{{secret:NAME}}` for a secret.",
    },
    body: {
      kind: json,
      description:
        "A text is sent as it is, anything else as JSON. Default: the run's payload; GET, HEAD and DELETE send none.",
    },
    timeout: {
      kind: duration(),
      kept: "timeoutMs",
      usual: "30s",
      description: "The time that one request may take, its answer's body included.",
    },
    okStatuses: { kind: statuses, usual: ["2xx"], description: "Statuses that are a success." },
    retryStatuses: {
      kind: statuses,
      usual: [408, 429, "5xx"],
      description: "Statuses that `retry` tries again; all others fail at once.",
    },
    redirects: {
      kind: count(0, mostRedirects),
      usual: 0,
      description: "The number of redirects that are followed, each only to hosts that the worker may call.",
    },
  },
  {
    example: '{ url: "https://…" }',
    together({ method, body }, place) {
      if (body !== undefined && bodilessMethods.includes(method))
        throw wrong(inner(place, "body"), `: ${method} sends none`, "Use POST, PUT or PATCH.");
    },
  },
);

/**
 * Reads the options of an HTTP task.
 * @throws TASK_INVALID, DURATION_INVALID, SECRET_INVALID, PAYLOAD_TOO_LARGE, PAYLOAD_NOT_JSON
 */
export const httpSpec = (task: string, given: HttpOptions): HttpSpec => httpKind.read(given, { task, path: "http" });
