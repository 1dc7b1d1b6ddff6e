/**
 * A time zone as a list of spans with a constant UTC offset. The offsets come from the runtime's Intl, where each call takes about 2 µs and
 * allocates memory, so each offset is read only once: a zone's spans are computed a year at a time when first needed, stored as a few
 * numbers, and shared by all schedules in the zone. The Intl formatter itself, which takes tens of kilobytes, is not cached.
 */
import { CarillonError } from "../base/errors.ts";
import { limits } from "../base/limits.ts";
import { editDistance } from "../base/nearest.ts";

/**
 * A span with a constant offset. Instants are epoch milliseconds. A local time is the instant plus `offset`, encoded as the epoch
 * milliseconds at which a UTC clock shows it.
 */
export interface Span {
  readonly from: number;
  /** The first instant after the span. */
  readonly to: number;
  readonly offset: number;
  /**
   * The change of the offset at `from`, in ms. Above 0: clocks went forward; below 0: clocks went back; 0: there is no transition at
   * `from`.
   */
  readonly entered: number;
  /** The change of the offset at `to`, in ms. */
  readonly left: number;
}

/** A zone's offsets in a time range, according to one release of the time zone database. */
export interface ZoneRules {
  /** Epoch milliseconds, ascending: the beginning of the range, then the instant of each change within it. */
  startsMs: number[];
  /** The offset that applies from each of these instants on, in ms: instant + offset = local time. */
  offsetsMs: number[];
  /** The exclusive end of the range, in epoch milliseconds. */
  toMs: number;
}

const dayMs = 86_400_000;

/**
 * The distance between two offsets that are read; where two neighbours differ, the transition is found by bisection. Two
 * transitions within four days that cancel each other out would be missed. The tzdata has no such transitions since 1970: the closest two
 * (Boa Vista in October 2000) are a week apart.
 */
const probeMs = 4 * dayMs;

/**
 * The extra time that is searched before and after the requested years. A span near the end of the searched time may be incomplete, because
 * a transition just outside affects local times by up to a day (Samoa, Kwajalein).
 */
const marginMs = 3 * dayMs;

/** The exclusive end of all slots, in epoch milliseconds; slots begin at 0. */
export const endOfTime = Date.UTC(limits.lastYear + 1, 0, 1);

interface Searched {
  from: number;
  to: number;
  /** The beginning of each span. The first entry is only where the search began, not a transition. */
  starts: readonly number[];
  offsets: readonly number[];
  spans: readonly Span[];
}

export class Zone {
  readonly name: string;
  /** Rules that are used instead of the runtime's within the time range that they cover. */
  readonly #rules: ZoneRules | undefined;
  #searched: Searched | undefined;
  #recent: Span | undefined;

  constructor(name: string, rules?: ZoneRules) {
    this.name = name;
    this.#rules = rules;
  }

  /**
   * Returns the span that contains the instant. Its `from` or `to` may be the edge of the time searched so far, instead of a transition.
   */
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

  /** Yields the spans that begin with a transition within (from, to). */
  *transitions(from: number, to: number): Generator<Span> {
    for (let span = this.at(from); span.to < to; ) {
      const at = span.to;
      span = this.at(at);
      // An instant that was only the edge of the search is skipped, because the span that contains it began earlier.
      if (span.from === at && span.entered !== 0) yield span;
    }
  }

  /** Returns the zone's offsets in [fromMs, toMs). */
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

  /**
   * Searches the year of an instant, and the years between that year and the years searched before. The result is stored by a
   * single assignment, because base/cut-off.ts may end a search at any point.
   */
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
      // The old first entry is dropped: it was the edge of the search, not a transition, and the last new span continues through it.
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

/** Appends all transitions in (from, to] to `starts` and `offsets`, whose last entry must be valid at `from`. */
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
 * Returns a function that reads the zone's UTC offset in ms at an instant. Only a few fields are formatted, because each one takes time.
 * The day of the month is enough to know whether the local date is before, equal to or after the UTC date.
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

/** Returns the shared instance of a zone. @throws ZONE_UNKNOWN */
export function zoneOf(value: unknown): Zone {
  const name = zoneName(value);
  let zone = zones.get(name);
  if (zone === undefined) {
    // Only valid names are added here, so this code never makes the map larger than the time zone database.
    zone = new Zone(name);
    zones.set(name, zone);
  }
  return zone;
}

/**
 * Registers a zone whose rules differ from the runtime's.
 * @returns a name such as "Africa/Casablanca@3", by which `zoneOf` returns this zone in this process
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

/**
 * The registered names, by zone and rules. There is one name for each zone and each version of its rules that this process has
 * used.
 */
const ruledNames = new Map<string, string>();

/**
 * Returns the zone's name in the spelling of the time zone database. A link such as US/Pacific is not replaced by its target, because the
 * target depends on the runtime's version, which may differ between the nodes of a cluster.
 * @throws ZONE_UNKNOWN
 */
export function zoneName(value: unknown): string {
  // Names of zones in use are not checked again, because a call of Intl takes 0.1 ms and thousands of tasks use few zones.
  if (typeof value === "string" && zones.has(value)) return value;
  if (typeof value !== "string" || !/^[A-Za-z][\w+\-/]{0,63}$/.test(value)) throw unknownZone(value);
  let canonical: string;
  try {
    canonical = new Intl.DateTimeFormat("en-US", { timeZone: value }).resolvedOptions().timeZone;
  } catch {
    // The RangeError of Intl is dropped, because it says only that the name is unknown.
    throw unknownZone(value);
  }
  const lower = value.toLowerCase();
  if (lower === "utc") return "UTC";
  if (lower === canonical.toLowerCase()) return canonical;
  return Intl.supportedValuesOf("timeZone").find((name) => name.toLowerCase() === lower) ?? linkCase(value);
}

/** Returns one spelling of a link, so that "us/pacific" and "US/Pacific" share one instance. */
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

/**
 * The last unknown name with its hint, because computing a hint takes a millisecond and thousands of stored tasks may name the same zone.
 */
let lastHint = { value: "", hint: "" };

function hintOf(value: string): string {
  if (lastHint.value !== value || value === "") lastHint = { value, hint: zoneHint(value) };
  return lastHint.hint;
}

function zoneHint(value: string): string {
  const offset = /^(?:UTC|GMT)?([+-])(\d{1,2})(?::?00)?$/i.exec(value.trim());
  if (offset !== null && Number(offset[2]) <= 14) {
    // The names Etc/GMT±n have inverted signs: Etc/GMT-2 is two hours ahead of UTC.
    const hours = Number(offset[2]);
    const name = hours === 0 ? "UTC" : `Etc/GMT${offset[1] === "+" ? "-" : "+"}${hours}`;
    return `A fixed offset of whole hours has a zone of its own: "${name}".`;
  }
  const wanted = value.slice(0, 64).toLowerCase().replace(/\s+/g, "_");
  const city = wanted.slice(wanted.lastIndexOf("/") + 1);
  let best = "";
  // At most a third of the letters may differ, so that "local" is not corrected to Oral.
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
