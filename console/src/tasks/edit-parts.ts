/** The parts of a task that say when not and where to run, and all that have no field of their own, as a form has them. */
import { CarillonError } from "../../../scheduler/src/errors.ts";
import { type Json, sortedJson } from "../../../scheduler/src/json.ts";
import type { TaskDefinition, TaskOptions } from "../../../scheduler/src/task.ts";
import { givenOptions } from "../../../scheduler/src/written-task.ts";

export const plainRoutes = [
  ...["any", "random", "round-robin", "least-loaded", "least-recently-used", "sticky", "broadcast"],
] as const;
export const routeKinds = [...plainRoutes, "hash", "pin", "shards"] as const;

export interface Window {
  /** Of the row: windows have no names. */
  id: number;
  from: string;
  to: string;
  zone: string;
  days: string[];
  then: "skip" | "delay";
}

export interface Rules {
  /** "": none. */
  calendar: string;
  on: "working-days" | "holidays";
  otherwise: "skip" | "next" | "previous";
  windows: Window[];
  route: string;
  pin: string;
  shards: number;
  /** gpu=a100, zone=eu */
  labels: string;
  /** JSON of `restParts`. */
  rest: string;
}

/** What a part is when it is taken away; undefined: an edit cannot take it away. */
const usual = {
  group: "default",
  slotPayload: null,
  payloadSchema: null,
  limit: {},
  rate: undefined,
  grace: "1s",
  history: "all",
  after: undefined,
  command: undefined,
  http: undefined,
} satisfies { [Part in keyof TaskOptions]?: Json | undefined };
export const restParts = Object.keys(usual) as (keyof typeof usual)[];

const isClock = (text: string) => /^\d\d:\d\d$/.test(text);
const labelsText = (labels: Record<string, string>) =>
  Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(", ");

export function rulesOf(definition: TaskDefinition): Rules {
  const { calendar, blackout, route = "any", labels = {}, ...others } = givenOptions(definition);
  const rest = Object.fromEntries(restParts.filter((part) => part in others).map((part) => [part, others[part]]));
  return {
    ...{ calendar: calendar?.name ?? "", on: calendar?.on ?? "working-days", otherwise: calendar?.otherwise ?? "skip" },
    windows: (blackout ?? []).map(({ from, to, zone = "UTC", days = [], then = "skip" }, id) => ({
      ...{ id, from, to, zone, days },
      then,
    })),
    route: typeof route === "string" ? route : (Object.keys(route)[0] as string),
    pin: typeof route === "object" && "pin" in route ? route.pin : "",
    shards: typeof route === "object" && "shards" in route ? route.shards : 2,
    labels: labelsText(labels),
    rest: JSON.stringify(rest, null, 2),
  };
}

const wrong = (message: string, hint: string) => new CarillonError("TASK_INVALID", message, { hint });

function labelsOf(text: string): Record<string, string> {
  const pairs = text.split(/[,\n]/).filter((pair) => pair.trim() !== "");
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf("=");
      if (at < 1) throw wrong(`labels: ${pair.trim()} has no value`, "For example gpu=a100, zone=eu.");
      return [pair.slice(0, at).trim(), pair.slice(at + 1).trim()];
    }),
  );
}

/** What cannot be read is told in the words of `pathOf`, so that it stands at its field. */
function restOf(text: string): Partial<Record<keyof typeof usual, Json>> {
  let rest: unknown;
  try {
    rest = JSON.parse(text.trim() === "" ? "{}" : text);
  } catch (error) {
    throw wrong(`rest: ${(error as Error).message}`, `It is JSON with ${restParts.join(", ")}.`);
  }
  if (typeof rest !== "object" || rest === null || Array.isArray(rest))
    throw wrong("rest: it must be an object", `It has ${restParts.join(", ")}.`);
  const stranger = Object.keys(rest).find((part) => !(restParts as string[]).includes(part));
  if (stranger !== undefined)
    throw wrong(`rest: ${JSON.stringify(stranger)} is no part of it`, `It has ${restParts.join(", ")}.`);
  return rest;
}

/** The options that these fields come to, each whole. @throws CarillonError */
function rulesOptions(form: Rules): Record<string, Json> {
  const { calendar, on, otherwise, route } = form;
  const rest = restOf(form.rest);
  return {
    calendar: calendar === "" ? null : { name: calendar, on, otherwise },
    blackout: form.windows.map(({ from, to, zone, days, then }) => ({
      ...{ from: from.trim(), to: to.trim() },
      then,
      // Moments have neither.
      ...(isClock(from.trim()) ? { zone, ...(days.length > 0 ? { days } : {}) } : {}),
    })),
    route:
      route === "pin"
        ? { pin: form.pin.trim() }
        : route === "shards"
          ? { shards: form.shards }
          : route === "hash"
            ? { hash: "key" }
            : route,
    labels: labelsOf(form.labels),
    ...Object.fromEntries(restParts.map((part) => [part, rest[part] ?? (usual[part] as Json | undefined) ?? null])),
  };
}

/** Only what differs between the two. @throws CarillonError */
export function rulesChanges(form: Rules, first: Rules): { part: string; was: unknown; is: Json }[] {
  const [was, is] = [rulesOptions(first), rulesOptions(form)];
  return Object.entries(is).flatMap(([part, value]) => {
    if (sortedJson(value) === sortedJson(was[part])) return [];
    if (value === null && part in usual && usual[part as keyof typeof usual] === undefined)
      throw wrong(`rest: ${part} cannot be taken away by an edit`, "Leave it, or define the task anew.");
    return [{ part, was: was[part], is: value }];
  });
}
