/**
 * A time zone as spans of constant UTC offset. The offsets come from the runtime (Intl), where each call takes about 2 µs and makes some
 * garbage, so each offset is read once: a zone's spans are found a year at a time when first needed, stored as a few numbers, and shared by
 * every schedule in that zone. The formatter itself (tens of kilobytes) is not kept.
 */
import { CarillonError } from "../base/errors.ts";
import { limits } from "../base/limits.ts";
import { editDistance } from "../base/nearest.ts";

/** Instants are epoch milliseconds; a local time is the instant plus `offset`, written as if it were epoch milliseconds. */
export interface Span {
  readonly from: number;
  /** The first instant after the span. */
  readonly to: number;
  readonly offset: number;
  /**
   * The change of offset at `from`. Above 0: local time jumped forward over a gap; below 0: it went back; 0: `from` is not a transition.
   */
  readonly entered: number;
  /** The same at `to`. */
  readonly left: number;
}

/** A zone's offsets in a range of time, as a version of the time zone database has them. */
export interface ZoneRules {
  /** Epoch milliseconds, ascending: the beginning of the range, then each change in it. */
  startsMs: number[];
  /** The offset from each start on: the amount to add to an instant to get local time. */
  offsetsMs: number[];
  /** The end of the range. */
  toMs: number;
}

const dayMs = 86_400_000;

/**
 * Offsets are read four days apart and bisected where they differ. Two transitions within four days that cancel each other out would be
 * overlooked; the tzdata of 1970 onwards has none: read every two hours from 1970 to 2040, all zones show the same 21,116 transitions, the
 * closest pair (Boa Vista's of October 2000) a week apart.
 */
const probeMs = 4 * dayMs;

/**
 * A span near the ends of the searched years may be incomplete: a transition just outside could reach in by its length, at most a day
 * (Samoa, Kwajalein). So the search covers more than the years that it answers for.
 */
const marginMs = 3 * dayMs;

/** Slots lie in [0, endOfTime). */
export const endOfTime = Date.UTC(limits.lastYear + 1, 0, 1);

interface Searched {
  from: number;
  to: number;
  /** Start of each span; the start of the first span is the edge of the search. */
  starts: readonly number[];
  offsets: readonly number[];
  spans: readonly Span[];
}

export class Zone {
  readonly name: string;
  /** Rules that replace the runtime's in the range of time that they cover. */
  readonly #rules: ZoneRules | undefined;
  #searched: Searched | undefined;
  #recent: Span | undefined;

  constructor(name: string, rules?: ZoneRules) {
    this.name = name;
    this.#rules = rules;
  }

  /** Returns the span that contains the instant. `from` and `to` may also be the present ends of the search. */
  at(instant: number): Span {
    const recent = this.#recent;
    if (recent !== undefined && instant >= recent.from && instant < recent.to) return recent;
    const { spans } = this.#search(instant);
    let low = 0;
    let high = spans.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if ((spans[middle] as Span).from <= instant) low = middle;
      else high = middle - 1;
    }
    this.#recent = spans[low] as Span;
    return this.#recent;
  }

  /** Yields the spans that begin in (from, to), each with a transition. */
  *transitions(from: number, to: number): Generator<Span> {
    for (let span = this.at(from); span.to < to; ) {
      const at = span.to;
      span = this.at(at);
      // A boundary that is only the present end of the search is not a transition, because the span began long before.
      if (span.from === at && span.entered !== 0) yield span;
    }
  }

  /** The zone's rules in [fromMs, toMs). */
  rules(fromMs: number, toMs: number): ZoneRules {
    const changes = [...this.transitions(fromMs, toMs)];
    return {
      startsMs: [fromMs, ...changes.map(({ from }) => from)],
      offsetsMs: [this.at(fromMs).offset, ...changes.map(({ offset }) => offset)],
      toMs,
    };
  }

  #offsetReader(): (instant: number) => number {
    const own = offsetReader(this.name);
    const rules = this.#rules;
    if (rules === undefined) return own;
    const { startsMs, offsetsMs, toMs } = rules;
    return (instant) => {
      const place = instant < toMs ? startsMs.findLastIndex((startMs) => startMs <= instant) : -1;
      return offsetsMs[place] ?? own(instant);
    };
  }

  /** Stores the result in one assignment, because a search may be cut off at any point (see base/cut-off.ts). */
  #search(instant: number): Searched {
    const year = new Date(instant).getUTCFullYear();
    const from = Date.UTC(year, 0, 1) - marginMs;
    const to = Date.UTC(year + 1, 0, 1) + marginMs;
    const known = this.#searched;
    if (known !== undefined && from >= known.from && to <= known.to) return known;
    const offsetAt = this.#offsetReader();
    let [starts, offsets] = known ? [[...known.starts], [...known.offsets]] : [[from], [offsetAt(from)]];
    const [knownFrom, knownTo] = known ? [known.from, known.to] : [from, from];
    if (from < knownFrom) {
      const [earlier, offsetsBefore] = [[from], [offsetAt(from)]];
      findTransitions(offsetAt, from, knownFrom, earlier, offsetsBefore);
      // The old first entry was the edge of the search, not a transition; the new last span continues through it.
      starts = earlier.concat(starts.slice(1));
      offsets = offsetsBefore.concat(offsets.slice(1));
    }
    if (to > knownTo) findTransitions(offsetAt, knownTo, to, starts, offsets);
    const [searchedFrom, searchedTo] = [Math.min(from, knownFrom), Math.max(to, knownTo)];
    const spans = offsets.map((offset, i) => {
      const before = offsets[i - 1] ?? offset;
      const after = offsets[i + 1] ?? offset;
      return {
        from: i === 0 ? searchedFrom + marginMs : (starts[i] as number),
        to: starts[i + 1] ?? searchedTo - marginMs,
        offset,
        entered: offset - before,
        left: after - offset,
      };
    });
    const searched = { from: searchedFrom, to: searchedTo, starts, offsets, spans };
    this.#searched = searched;
    return searched;
  }
}

/** Appends every transition in (from, to] to `starts` and `offsets`, whose last entry is valid at `from`. */
function findTransitions(
  offsetAt: (instant: number) => number,
  from: number,
  to: number,
  starts: number[],
  offsets: number[],
): void {
  let offset = offsets[offsets.length - 1] as number;
  for (let known = from; known < to; ) {
    const probe = Math.min(known + probeMs, to);
    const probed = offsetAt(probe);
    while (offset !== probed) {
      let low = known;
      let high = probe;
      while (high - low > 1000) {
        const middle = Math.floor((low + high) / 2000) * 1000;
        if (offsetAt(middle) === offset) low = middle;
        else high = middle;
      }
      offset = offsetAt(high);
      starts.push(high);
      offsets.push(offset);
      known = high;
    }
    known = probe;
  }
}

/**
 * Formats few fields, because each field costs time: the day of the month is enough to find out on which side of midnight the local time
 * is.
 */
function offsetReader(zone: string): (instant: number) => number {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone: zone,
    calendar: "gregory",
    numberingSystem: "latn",
    hourCycle: "h23",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  });
  const parts = /^(\d+), (\d+):(\d+):(\d+)$/;
  return (instant) => {
    const text = format.format(instant);
    const found = parts.exec(text);
    if (found === null) throw new Error(`unexpected date text from Intl: ${text}`);
    const day = Number(found[1]);
    const localSecond = Number(found[2]) * 3600 + Number(found[3]) * 60 + Number(found[4]);
    const utcDay = new Date(instant).getUTCDate();
    const utcSecond = Math.floor((((instant % dayMs) + dayMs) % dayMs) / 1000);
    let ahead = 0;
    if (day !== utcDay) ahead = day === utcDay + 1 || (day === 1 && utcDay > 2) ? 1 : -1;
    return (ahead * 86_400 + localSecond - utcSecond) * 1000;
  };
}

const zones = new Map<string, Zone>();

/** @throws ZONE_UNKNOWN */
export function zoneOf(value: unknown): Zone {
  const name = zoneName(value);
  let zone = zones.get(name);
  if (zone === undefined) {
    // Only names that passed the check are added, so the map is never larger than the zone database.
    zone = new Zone(name);
    zones.set(name, zone);
  }
  return zone;
}

/**
 * Registers a zone whose rules differ from the runtime's.
 * @returns the name under which `zoneOf` returns this zone, in this process only, such as "Africa/Casablanca@3"
 */
export function ruledZone(value: string, rules: ZoneRules): string {
  const name = zoneName(value);
  const key = JSON.stringify([name, rules]);
  let ruled = ruledNames.get(key);
  if (ruled === undefined) {
    ruled = `${name}@${ruledNames.size + 1}`;
    ruledNames.set(key, ruled);
    zones.set(ruled, new Zone(name, rules));
  }
  return ruled;
}

/** The registered names, by zone and rules: one for each version of the zone database that changed the rules. */
const ruledNames = new Map<string, string>();

/**
 * The name in the spelling of the zone database. Links (US/Pacific) stay as given, because their targets depend on the runtime's version,
 * which may differ between the nodes of a cluster.
 * @throws ZONE_UNKNOWN
 */
export function zoneName(value: unknown): string {
  // A call of Intl takes 0.1 ms, and thousands of tasks use few zones, so known names skip it.
  if (typeof value === "string" && zones.has(value)) return value;
  if (typeof value !== "string" || !/^[A-Za-z][\w+\-/]{0,63}$/.test(value)) throw unknownZone(value);
  let canonical: string;
  try {
    canonical = new Intl.DateTimeFormat("en-US", { timeZone: value }).resolvedOptions().timeZone;
  } catch {
    // Intl's RangeError says only that the name is unknown.
    throw unknownZone(value);
  }
  const lower = value.toLowerCase();
  if (lower === "utc") return "UTC";
  if (lower === canonical.toLowerCase()) return canonical;
  return Intl.supportedValuesOf("timeZone").find((name) => name.toLowerCase() === lower) ?? linkCase(value);
}

/** Spells a link in one way, so that "us/pacific" and "US/Pacific", which are the same link, share one table. */
function linkCase(link: string): string {
  if (!link.includes("/")) return link.toUpperCase();
  return link
    .toLowerCase()
    .replace(/(?:^|[/_-])[a-z]/g, (start) => start.toUpperCase())
    .replace(/^(?:us|gmt|utc)(?=[/+-])/i, (area) => area.toUpperCase());
}

function unknownZone(value: unknown): CarillonError {
  const text = typeof value === "string" ? JSON.stringify(value.slice(0, 64)) : String(typeof value);
  return new CarillonError("ZONE_UNKNOWN", `time zone: ${text} is not a zone that this runtime knows`, {
    hint: typeof value === "string" ? hintOf(value) : zoneHint(""),
  });
}

/** The last unknown name and its hint, because finding a hint takes a millisecond and thousands of stored tasks may name the same zone. */
let lastHint = { value: "", hint: "" };

function hintOf(value: string): string {
  if (lastHint.value !== value || value === "") lastHint = { value, hint: zoneHint(value) };
  return lastHint.hint;
}

function zoneHint(value: string): string {
  const offset = /^(?:UTC|GMT)?([+-])(\d{1,2})(?::?00)?$/i.exec(value.trim());
  if (offset !== null && Number(offset[2]) <= 14) {
    // POSIX counts westwards, so the sign is inverted.
    const hours = Number(offset[2]);
    const name = hours === 0 ? "UTC" : `Etc/GMT${offset[1] === "+" ? "-" : "+"}${hours}`;
    return `A fixed offset of whole hours has a zone of its own: "${name}".`;
  }
  const wanted = value.slice(0, 64).toLowerCase().replace(/\s+/g, "_");
  const city = wanted.slice(wanted.lastIndexOf("/") + 1);
  let best = "";
  // At most a third of the letters may differ, so that "local" is not taken for a misspelt Oral.
  let least = Math.min(3, Math.floor(city.length / 3)) + 1;
  for (const name of Intl.supportedValuesOf("timeZone")) {
    const lower = name.toLowerCase();
    const distance = Math.min(
      editDistance(wanted, lower),
      city.length < 3 ? 9 : editDistance(city, lower.slice(lower.lastIndexOf("/") + 1)),
    );
    if (distance < least) {
      least = distance;
      best = name;
    }
  }
  return best === ""
    ? 'Give a name of the IANA time zone database, such as "Europe/Berlin", or "UTC".'
    : `Did you mean "${best}"?`;
}
