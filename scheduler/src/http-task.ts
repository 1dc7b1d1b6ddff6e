/** What an HTTP task's definition says: which URL is called and how its answer is judged. Pure; http-task/ makes the call. */
import { type Duration, parseDuration } from "./duration.ts";
import { CarillonError } from "./errors.ts";
import { type Json, jsonText, shownValue } from "./json.ts";
import { limits } from "./limits.ts";
import { checkSecretName, secretPlaces } from "./secrets.ts";

/** A status, or a class of them such as "5xx". */
export type StatusPattern = number | `${1 | 2 | 3 | 4 | 5}xx`;

export interface HttpOptions {
  /** http: or https:, without user and password. */
  url: string;
  /** Default POST. */
  method?: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";
  /**
   * Go to the URL's own origin only. They are kept in the store, readable by whoever can read tasks: for what is not to be read,
   * write {{secret:NAME}}.
   */
  headers?: Record<string, string>;
  /** A text is sent as it is, anything else as JSON. Default: the run's payload as JSON; GET, HEAD and DELETE send none. */
  body?: unknown;
  /** Of one request, its answer's body included; default 30 s. */
  timeout?: Duration;
  /** What counts as success; default ["2xx"]. */
  okStatuses?: StatusPattern[];
  /** What the task's retry policy tries again; default [408, 429, "5xx"]. Any other status fails at once. */
  retryStatuses?: StatusPattern[];
  /** How many redirects are followed, each only to where the worker may call; default 0: a redirect is a failure. */
  redirects?: number;
}

/** The same as the store keeps it: complete, plain JSON. */
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

const optionNames = "url, method, headers, body, timeout, okStatuses, retryStatuses, redirects".split(", ");
const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
export const bodilessMethods: readonly string[] = ["GET", "HEAD", "DELETE"];
const tokenPattern = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** The request's framing, whom it is for, and what the worker itself says of the run. */
const ownHeaders =
  /^(?:host|content-length|transfer-encoding|connection|keep-alive|upgrade|te|trailer|expect|accept-encoding|proxy-.*|carillon-.*)$/i;
/** Visible ASCII, spaces and tabs. */
export const headerValue = /^[\t\x20-\x7e]*$/;
const mostHeaders = 50;
const mostRedirects = 5;

/** @throws TASK_INVALID, DURATION_INVALID, PAYLOAD_TOO_LARGE, PAYLOAD_NOT_JSON */
export function httpSpec(task: string, given: HttpOptions): HttpSpec {
  const wrong = (what: string, hint: string) =>
    new CarillonError("TASK_INVALID", `task ${task}: http${what}`, { hint });
  if (typeof given !== "object" || given === null)
    throw wrong(" must be an object", 'For example { url: "https://…" }.');
  const unknown = Object.keys(given).find((name) => !optionNames.includes(name));
  if (unknown !== undefined) throw wrong(` has no ${JSON.stringify(unknown)}`, `It has ${optionNames.join(", ")}.`);
  const { method = "POST", headers = {}, body, redirects = 0 } = given;
  if (!methods.includes(method))
    throw wrong(`.method cannot be ${shownValue(method)}`, `Give one of ${methods.join(", ")}.`);
  if (!Number.isInteger(redirects) || redirects < 0 || redirects > mostRedirects)
    throw wrong(`.redirects cannot be ${shownValue(redirects)}`, `Give 0 to ${mostRedirects}.`);
  if (body !== undefined && bodilessMethods.includes(method))
    throw wrong(`.body: ${method} sends none`, "Use POST, PUT or PATCH.");
  const statuses = (name: string, list: unknown): StatusPattern[] => {
    const good = (status: unknown) =>
      (Number.isInteger(status) && (status as number) >= 200 && (status as number) <= 599) ||
      (typeof status === "string" && /^[2-5]xx$/.test(status));
    if (Array.isArray(list) && list.length > 0 && Array.from(list).every(good)) return [...(list as StatusPattern[])];
    throw wrong(`.${name} must be a list of statuses`, 'For example [200, 404, "5xx"].');
  };
  const bodyText = jsonText(body, `task ${task}: http.body`);
  return {
    url: taskUrl(given.url, wrong),
    method,
    headers: taskHeaders(headers, wrong),
    ...(bodyText === null ? {} : { body: JSON.parse(bodyText) as Json }),
    timeoutMs: parseDuration(given.timeout ?? "30s", `task ${task}: http.timeout`),
    okStatuses: statuses("okStatuses", given.okStatuses ?? ["2xx"]),
    retryStatuses: statuses("retryStatuses", given.retryStatuses ?? [408, 429, "5xx"]),
    redirects,
  };
}

export const matchesStatus = (patterns: readonly StatusPattern[], status: number): boolean =>
  patterns.some((pattern) => pattern === status || pattern === `${Math.floor(status / 100)}xx`);

type Wrong = (what: string, hint: string) => CarillonError;

function taskUrl(given: unknown, wrong: Wrong): string {
  const text = typeof given === "string" ? given : "";
  if (text.length > limits.urlLength || !URL.canParse(text))
    throw wrong(".url is no URL", `Give a whole one, at most ${limits.urlLength} characters: "https://host/path".`);
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw wrong(`.url cannot begin with ${url.protocol}`, "Use http: or https:.");
  if (url.username !== "" || url.password !== "")
    throw wrong(
      ".url holds a user or password, which logs and lists would show",
      "Let the receiver check the signature, or put an Authorization header into `headers`.",
    );
  url.hash = "";
  return url.href;
}

function taskHeaders(given: unknown, wrong: Wrong): Record<string, string> {
  if (typeof given !== "object" || given === null || Array.isArray(given))
    throw wrong(".headers must be an object of texts", 'For example { "X-Tenant": "eu" }.');
  const entries = Object.entries(given);
  if (entries.length > mostHeaders) throw wrong(".headers are too many", `Give at most ${mostHeaders}.`);
  for (const [name, value] of entries) {
    if (!tokenPattern.test(name) || ownHeaders.test(name))
      throw wrong(
        `.headers cannot hold ${JSON.stringify(name)}`,
        "It is no header's name, or one that the worker sets.",
      );
    // A line's end here would begin a header, or a request, of the task's own.
    if (typeof value !== "string" || !headerValue.test(value) || value.length > limits.urlLength)
      throw wrong(`.headers: the value of ${name} cannot be sent`, "Use printable ASCII on one line.");
    for (const [, secret = ""] of value.matchAll(secretPlaces)) checkSecretName(secret);
  }
  return Object.fromEntries(entries.map(([name, value]) => [name.toLowerCase(), value as string]));
}
