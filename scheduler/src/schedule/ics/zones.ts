/** Finds the zone that a TZID parameter names: a zone of the IANA database, a Windows zone, or one that the file defines by a VTIMEZONE. */
import { isCarillonError } from "../../base/errors.ts";
import type { Offsets } from "../calendar.ts";
import { parseRule } from "../rrule/rule.ts";
import { ruleTimes } from "../rrule/rule-times.ts";
import { zoneOf } from "../zone.ts";
import { type Component, type Property, single, wrong } from "./content-lines.ts";
import { readingRule, timesOf } from "./times.ts";
import { windowsZones } from "./windows-zones.ts";

const windowsNames = new Map(Object.entries(windowsZones).map(([name, zone]) => [name.toLowerCase(), zone]));

/** Returns the zone with this IANA or Windows name; null if there is none. */
export function zoneNamed(name: string): Offsets | null {
  const plain = name.trim();
  // Some programs write a path before the name, such as /citadel.org/20210210_1/Europe/Berlin.
  const parts = plain.startsWith("/") ? plain.split("/").slice(1) : [plain];
  const names = [windowsNames.get(plain.toLowerCase()), ...parts.map((_, at) => parts.slice(at).join("/"))];
  for (const one of names) {
    try {
      if (one !== undefined) return zoneOf(one);
    } catch (error) {
      if (!isCarillonError(error, "ZONE_UNKNOWN")) throw error;
    }
  }
  return null;
}

/** The zones of one VCALENDAR, by TZID. */
export class IcsZones {
  readonly #defined = new Map<string, Component>();
  readonly #known = new Map<string, Offsets | null>();
  readonly #reported = new Set<string>();
  readonly #onUnknown: (property: Property, name: string) => void;
  /**
   * The zone that the file's author presumably used. Times without a zone are read in it, and UTC times in series of whole days
   * are converted with it.
   */
  readonly home: Offsets;

  /** @param usual the `home` zone if the file does not determine one */
  constructor(calendar: Component, usual: Offsets, onUnknown: (property: Property, name: string) => void) {
    this.#onUnknown = onUnknown;
    for (const component of calendar.components) {
      const name = component.name === "VTIMEZONE" && single(component, "TZID")?.value;
      if (name) this.#defined.set(name, component);
    }
    const given = calendar.properties.find(({ name }) => name === "X-WR-TIMEZONE")?.value;
    const [only, other] = this.#defined.keys();
    this.home =
      (given === undefined ? null : this.#find(given)) ??
      (only === undefined || other !== undefined ? null : this.#find(only)) ??
      usual;
  }

  /** Returns the property's zone; null if it names no zone or an unknown zone. An unknown name is reported at its first use. */
  of(property: Property): Offsets | null {
    const name = property.parameters.get("TZID");
    if (name === undefined || name === "") return null;
    const zone = this.#find(name);
    if (zone === null && !this.#reported.has(name)) {
      this.#reported.add(name);
      this.#onUnknown(property, name);
    }
    return zone;
  }

  #find(name: string): Offsets | null {
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    const component = this.#defined.get(name);
    const location = component && single(component, "X-LIC-LOCATION")?.value;
    const zone =
      zoneNamed(name) ??
      (location === undefined ? null : zoneNamed(location)) ??
      (component ? definedZone(component) : null);
    this.#known.set(name, zone);
    return zone;
  }
}

interface Observance {
  before: number;
  after: number;
  /**
   * Returns the last local time up to `local` at which the observance began, in the offset that applied before it; −Infinity if it
   * had not begun.
   */
  lastBegin(local: number): number;
}

function definedZone(component: Component): Offsets | null {
  const observances = component.components
    .filter(({ name }) => name === "STANDARD" || name === "DAYLIGHT")
    .map(observanceOf);
  const [first] = observances;
  if (first === undefined) return null;
  return {
    at(instant) {
      // Before the first observance begins, the zone has the offset that the first listed observance gives as its TZOFFSETFROM.
      let [begun, offset] = [Number.NEGATIVE_INFINITY, first.before];
      for (const { before, after, lastBegin } of observances) {
        const begin = lastBegin(instant + before) - before;
        if (begin > begun) [begun, offset] = [begin, after];
      }
      return { offset };
    },
  };
}

function observanceOf(component: Component): Observance {
  const need = (name: string) => {
    const found = single(component, name);
    if (found) return found;
    throw wrong(
      component,
      `has no ${name}`,
      "Mend the zone's definition, or name a zone of the IANA database by TZID.",
    );
  };
  const [before, after] = [offsetOf(need("TZOFFSETFROM")), offsetOf(need("TZOFFSETTO"))];
  // Exchange and Outlook begin their definitions in 1601. Such a year is replaced by 1900, which is earlier than all times read here.
  const early = (property: Property) => ({
    ...property,
    value: property.value.trim().replace(/^(?:0\d|1[0-8])\d\d(?=\d{4})/, "1900"),
  });
  const [start] = timesOf(early(need("DTSTART")), null);
  const startMs = start?.ms as number;
  const added = component.properties
    .filter(({ name }) => name === "RDATE")
    .flatMap((property) => timesOf(early(property), null))
    .map(({ ms }) => ms);
  const rules = component.properties
    .filter(({ name }) => name === "RRULE")
    .map((property) =>
      readingRule(property, () => {
        const rule = parseRule(property.value);
        const until =
          rule.until?.kind === "instant" ? { kind: "local" as const, ms: rule.until.ms + before } : rule.until;
        return ruleTimes({ ...rule, until }, startMs);
      }),
    );
  const begins = [startMs, ...added];
  return {
    before,
    after,
    lastBegin: (local) =>
      Math.max(
        ...begins.map((begin) => (begin <= local ? begin : Number.NEGATIVE_INFINITY)),
        ...rules.map((times) => times.previousLocal(local)),
      ),
  };
}

function offsetOf(property: Property): number {
  const [, sign, ...digits] = /^([+-])(\d\d)(\d\d)(\d\d)?$/.exec(property.value.trim()) ?? [];
  if (sign === undefined)
    throw wrong(property, `${JSON.stringify(property.value.slice(0, 40))} is no offset`, "Such as +0100.");
  const [hours = 0, minutes = 0, seconds = 0] = digits.map((text) => Number(text ?? 0));
  return (sign === "-" ? -1 : 1) * ((hours * 60 + minutes) * 60 + seconds) * 1000;
}
