/** The form's state for blackout windows, the calendar, routing, and all options without their own field. */
import {
  CarillonError,
  givenOptions,
  type Json,
  type OptionName,
  sortedJson,
  type TaskDefinition,
  takesNull,
  usualWritten,
} from "carillon/task";
import { restOptions, rowOf } from "./plain-options.ts";

export const plainRoutes = [
  "any",
  "random",
  "round-robin",
  "least-loaded",
  "least-recently-used",
  "sticky",
  "broadcast",
] as const;
export const routeKinds = [...plainRoutes, "hash", "pin", "shards"] as const;

export interface Window {
  /** The row's React key, because windows have no names. */
  id: number;
  from: string;
  to: string;
  zone: string;
  days: string[];
  then: "skip" | "delay";
}

export interface Rules {
  /** The calendar's name; "" for none. */
  calendar: string;
  on: "working-days" | "holidays";
  otherwise: "skip" | "next" | "previous";
  windows: Window[];
  route: string;
  pin: string;
  shards: number;
  /** Labels as text, such as "gpu=a100, zone=eu". */
  labels: string;
  /** The options in `restOptions` as JSON text. */
  rest: string;
}

/** The value that an option has after its removal; undefined if an edit cannot remove the option. */
const usualOf = (option: OptionName): Json | undefined => {
  const row = rowOf(option);
  return takesNull(row) ? null : (usualWritten(row) ?? undefined);
};

const isRest = (part: string): part is OptionName => (restOptions as readonly string[]).includes(part);
const isClock = (text: string) => /^\d\d:\d\d$/.test(text);
const labelsText = (labels: Record<string, string>) =>
  Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(", ");

export function rulesOf(definition: TaskDefinition): Rules {
  const given = givenOptions(definition);
  const { calendar, blackout, route = "any", labels = {} } = given;
  const rest = Object.fromEntries(restOptions.filter((part) => part in given).map((part) => [part, given[part]]));
  return {
    calendar: calendar?.name ?? "",
    on: calendar?.on ?? "working-days",
    otherwise: calendar?.otherwise ?? "skip",
    windows: (blackout ?? []).map(({ from, to, zone = "UTC", days = [], then = "skip" }, id) => ({
      id,
      from,
      to,
      zone,
      days,
      then,
    })),
    route: typeof route === "string" ? route : (Object.keys(route)[0] as string),
    pin: typeof route === "object" && "pin" in route ? route.pin : "",
    shards: typeof route === "object" && "shards" in route ? route.shards : 2,
    labels: labelsText(labels),
    rest: JSON.stringify(rest, null, 2),
  };
}

const wrong = (path: string, message: string, hint: string) =>
  new CarillonError("TASK_INVALID", message, { hint, path });

function labelsOf(text: string): Record<string, string> {
  const pairs = text.split(/[,\n]/).filter((pair) => pair.trim() !== "");
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf("=");
      if (at < 1) throw wrong("labels", `labels: ${pair.trim()} has no value`, "For example gpu=a100, zone=eu.");
      return [pair.slice(0, at).trim(), pair.slice(at + 1).trim()];
    }),
  );
}

function restOf(text: string): Partial<Record<OptionName, Json>> {
  let rest: unknown;
  try {
    rest = JSON.parse(text.trim() === "" ? "{}" : text);
  } catch (error) {
    throw wrong("rest", (error as Error).message, `It is JSON with ${restOptions.join(", ")}.`);
  }
  if (typeof rest !== "object" || rest === null || Array.isArray(rest))
    throw wrong("rest", "it must be an object", `It has ${restOptions.join(", ")}.`);
  const stranger = Object.keys(rest).find((part) => !(restOptions as readonly string[]).includes(part));
  if (stranger !== undefined)
    throw wrong("rest", `${JSON.stringify(stranger)} is no part of it`, `It has ${restOptions.join(", ")}.`);
  return rest;
}

/** Converts the fields into complete options. @throws CarillonError */
function rulesOptions(form: Rules): Record<string, Json> {
  const { calendar, on, otherwise, route } = form;
  const rest = restOf(form.rest);
  return {
    calendar: calendar === "" ? null : { name: calendar, on, otherwise },
    blackout: form.windows.map(({ from, to, zone, days, then }) => ({
      from: from.trim(),
      to: to.trim(),
      then,
      // Zone and days apply only to a window between two times of day, not to one between two instants.
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
    ...Object.fromEntries(restOptions.map((part) => [part, rest[part] ?? usualOf(part) ?? null])),
  };
}

/**
 * The options that differ between the present form and the initial form (`first`).
 * @throws CarillonError if a field is invalid, or if an edit cannot remove an option
 */
export function rulesChanges(form: Rules, first: Rules): { part: string; was: unknown; is: Json }[] {
  const [was, is] = [rulesOptions(first), rulesOptions(form)];
  return Object.entries(is).flatMap(([part, value]) => {
    if (sortedJson(value) === sortedJson(was[part])) return [];
    if (value === null && isRest(part) && usualOf(part) === undefined)
      throw wrong("rest", `${part} cannot be taken away by an edit`, "Leave it, or define the task anew.");
    return [{ part, was: was[part], is: value }];
  });
}
