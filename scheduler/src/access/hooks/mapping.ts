/** The mapping of a hook: from a request to the run that it enqueues. Without side effects. */
import type { Duration } from "../../base/duration.ts";
import { CarillonError } from "../../base/errors.ts";
import { type HookContent, type HookScheme, isSource } from "./hook.ts";

export interface HookRequest {
  headers: Readonly<Record<string, string | string[] | undefined>>;
  body: unknown;
}

export interface HookRun {
  task: string;
  payload: unknown;
  key?: string;
  in?: Duration;
}

/** The place of the delivery's id in requests of each scheme. A redelivery has the same id. */
const deliveryKeys: Readonly<Record<HookScheme, string | undefined>> = {
  github: "header:x-github-delivery",
  stripe: "/id",
  standard: "header:webhook-id",
  bearer: undefined,
};

/** Returns the run's unique key. It contains the hook's name, because hooks can share a task. Names of hooks have no #. */
export const keyOf = (hook: string, given: string): string => `${hook}#${given}`;

/** @returns null if the hook has no task for the request's value @throws REQUEST_INVALID if the request lacks a key or a delay */
export function runOf(
  { scheme, task, payload = "", key = deliveryKeys[scheme], delay }: HookContent,
  request: HookRequest,
): HookRun | null {
  const chosen = typeof task === "string" ? task : chosenBy(task, request);
  if (chosen === undefined) return null;
  const given =
    typeof payload === "string"
      ? valueAt(payload, request)
      : Object.fromEntries(Object.entries(payload).map(([name, source]) => [name, valueAt(source, request) ?? null]));
  return {
    task: chosen,
    payload: given,
    ...(key === undefined ? {} : { key: textAt(key, request, "key") }),
    ...(delay === undefined ? {} : { in: isSource(delay) ? durationAt(delay, request) : delay }),
  };
}

function chosenBy({ by, of }: Exclude<HookContent["task"], string>, request: HookRequest): string | undefined {
  const value = valueAt(by, request);
  return typeof value === "string" && Object.hasOwn(of, value) ? of[value] : undefined;
}

/** Returns the value at a JSON Pointer (RFC 6901) or in a header; undefined if the request does not have it. */
function valueAt(source: string, { headers, body }: HookRequest): unknown {
  if (source.startsWith("header:")) return headers[source.slice("header:".length).toLowerCase()];
  let value = body;
  for (const step of source.split("/").slice(1)) {
    const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  return value;
}

function textAt(source: string, request: HookRequest, part: string): string {
  const value = valueAt(source, request);
  if (typeof value === "string" && value !== "") return value;
  if (Number.isSafeInteger(value)) return String(value);
  throw lacks(part, source, "text");
}

function durationAt(source: string, request: HookRequest): Duration {
  const value = valueAt(source, request);
  if (typeof value === "string" || typeof value === "number") return value;
  throw lacks("delay", source, "duration");
}

const lacks = (part: string, source: string, what: string) =>
  new CarillonError(
    "REQUEST_INVALID",
    `the request has no ${what} at ${source}, from which the hook takes its ${part}`,
    {
      path: part,
      hint: "Change the hook, or what is sent.",
    },
  );
