/**
 * The schedule kind `rrule`: a recurrence rule of RFC 5545 with a start, additional dates and excluded dates. Its local times are converted
 * to instants by the zone and the policies for daylight saving, as for a cron.
 */
import { CarillonError, within } from "../../base/errors.ts";
import { type BoundOptions, type Bounds, boundNames, boundsOf, mostTimesOfCron } from "../bounds.ts";
import { instantOf, type Jitter, type JitterOptions, jitterNames, jitterOf, oneOf, only, time } from "../given.ts";
import { dayMs, type LocalTimes, localText, lowerBound, sortedUnique } from "../local-times.ts";
import { endOfTime, type Zone, zoneName, zoneOf } from "../zone.ts";
import {
  type FoldPolicy,
  foldPolicies,
  type GapPolicy,
  gapPolicies,
  nextInZone,
  previousInZone,
} from "../zoned-cron.ts";
import { DatedTimes } from "./dated-times.ts";
import { parseRule, type Rule, ruleText, wrongRule } from "./rule.ts";
import { refuseMany, ruleLines, type ZonedTime } from "./rule-text.ts";
import { type RuleTime, ruleTime, ruleTimeText } from "./rule-time.ts";
import { coversAllHours, ruleTimes } from "./rule-times.ts";
import { ruleWords } from "./rule-words.ts";

export type RuleSpec = {
  type: "rrule";
  /** The value of an RRULE property, such as "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU". */
  rule: string;
  /** A local time such as "2026-01-06T09:00:00", or a date, which means the local time at its beginning. */
  start: string;
  zone: string;
  /** Additional times: local times, dates, or instants with Z. */
  rdate?: string[];
  /** Excluded times: local times, or instants with Z. A date excludes all times on that day. */
  exdate?: string[];
  gap: GapPolicy;
  overlap: FoldPolicy;
} & Jitter &
  Bounds;

export type RuleDate = Date | number | string;

export interface RuleOptions extends BoundOptions, JitterOptions {
  /** Default: the zone of DTSTART in the rule's text, else "UTC". */
  zone?: string;
  /**
   * The local time from which the rule counts (DTSTART). A string without Z or an offset is a local time in the zone. Default:
   * `from`.
   */
  start?: RuleDate;
  /** Additional times. */
  rdate?: RuleDate[];
  /** Excluded times, or dates on which all times are excluded. */
  exdate?: RuleDate[];
  gap?: GapPolicy;
  overlap?: FoldPolicy;
}

const names = [
  "type",
  "rule",
  "start",
  "zone",
  "rdate",
  "exdate",
  "gap",
  "overlap",
  ...jitterNames,
  ...boundNames,
] as const;

/** Validates a spec. @throws RRULE_INVALID, RRULE_NEVER, ZONE_UNKNOWN, SCHEDULE_INVALID, SLOT_TOO_FAR */
export function ruleSpec(value: unknown): RuleSpec {
  const given = only(value, "rrule", names);
  const lines = ruleLines(given.rule);
  const rule = parseRule(lines.rule);
  const zone = zoneGiven(given.zone, lines.start);
  const bounds = boundsOf(given, mostTimesOfCron);
  const start = startOf(given.start ?? (lines.start === null ? bounds.fromMs : undefined), lines.start, zone);
  if (rule.until?.kind === "day" && start.kind !== "day")
    throw wrongRule(
      "UNTIL is a date, and the start has a time",
      "Programs disagree on whether that day counts. Give UNTIL a time: UNTIL=20261231T235959.",
    );
  const rdate = timesGiven("rdate", given.rdate, lines.rdate, zone);
  const exdate = timesGiven("exdate", given.exdate, lines.exdate, zone);
  if (start.kind !== "day" && rdate.some(({ kind }) => kind === "day"))
    throw wrongRule("rdate has a date without a time", 'Give its time as well: "2026-03-01T09:00".', "rdate");
  const elapsed = coversAllHours(rule);
  const spec: RuleSpec = {
    type: "rrule",
    rule: ruleText(rule),
    start: ruleTimeText(start),
    zone: zone.name,
    ...(rdate.length === 0 ? {} : { rdate: rdate.map(ruleTimeText) }),
    ...(exdate.length === 0 ? {} : { exdate: exdate.map(ruleTimeText) }),
    gap: oneOf("gap", given.gap ?? (elapsed ? "skip" : "shift"), gapPolicies),
    overlap: oneOf("overlap", given.overlap ?? (elapsed ? "both" : "first"), foldPolicies),
    ...jitterOf(given),
    ...bounds,
  };
  if (new RuleSchedule(spec).next(-1) === null)
    throw new CarillonError(
      "RRULE_NEVER",
      `rrule: ${spec.rule} from ${spec.start} has no occurrence from 1970 to 2200`,
      {
        hint: "Mend the days that it names, its UNTIL or its EXDATE.",
        path: "rule",
      },
    );
  return spec;
}

function zoneGiven(given: unknown, start: ZonedTime | null): Zone {
  const own = start === null || start.zone === "" ? undefined : within("rule", () => zoneName(start.zone));
  if (given === undefined) return zoneOf(own ?? "UTC");
  const zone = within("zone", () => zoneOf(given));
  if (own !== undefined && own !== zone.name)
    throw wrongRule(`DTSTART is in ${own}, and the zone is ${zone.name}`, "Leave one of the two out.", "zone");
  return zone;
}

function startOf(given: unknown, line: ZonedTime | null, zone: Zone): RuleTime {
  if (given === undefined && line === null)
    throw wrongRule(
      "there is no start",
      'A rule counts from its DTSTART: give start: "2026-01-06T09:00", a line DTSTART, or from.',
      "start",
    );
  if (given !== undefined && line !== null)
    throw wrongRule("start and DTSTART are both given", "Leave one of the two out.", "start");
  const start = line?.time ?? timeGiven(given, "start", "start");
  if (start.kind !== "instant") return start;
  return { kind: "local", ms: start.ms + zone.at(start.ms).offset };
}

/**
 * Combines the times of an option with those in the rule's text.
 * @param given the option's value
 * @param lines the times in the lines of the rule's text
 */
function timesGiven(name: "rdate" | "exdate", given: unknown, lines: ZonedTime[], zone: Zone): RuleTime[] {
  if (given !== undefined && !Array.isArray(given))
    throw wrongRule(`${name} is not a list`, 'Give a list of times, such as ["2026-12-25"].', name);
  const times = [
    ...((given ?? []) as unknown[]).map((one, at) => timeGiven(one, name, `${name}[${at}]`)),
    ...lines.map((one) => inZone(one, zone)),
  ];
  refuseMany(name, times);
  const byText = new Map(times.map((one) => [ruleTimeText(one), one]));
  return [...byText.values()].sort((a, b) => a.ms - b.ms || a.kind.localeCompare(b.kind));
}

function timeGiven(given: unknown, what: string, path: string): RuleTime {
  // A string with an offset is an instant, not a local time.
  const isLocal = typeof given === "string" && !/T.*[+-]\d\d:?\d\d$/i.test(given);
  if (isLocal) return ruleTime(given, what, path);
  const ms = within(path, () => instantOf(given, what));
  if (ms % 1000 !== 0) throw wrongRule(`${what} is not in whole seconds`, "Leave the milliseconds out.", path);
  return { kind: "instant", ms };
}

/**
 * Converts a local time of another zone to an instant. A skipped local time is shifted by the gap's length; a repeated one means its first
 * instant.
 */
function inZone({ time: given, zone: name, path }: ZonedTime, zone: Zone): RuleTime {
  if (name === "" || given.kind !== "local") return given;
  const own = within(path, () => zoneOf(name));
  if (own === zone) return given;
  const ms = nextInZone(new DatedTimes(null, [given.ms]), own, "shift", "first", given.ms - 2 * dayMs);
  if (ms === null) throw wrongRule(`${localText(given.ms)} in ${name} lies before 1970`, "Leave it out.", path);
  return { kind: "instant", ms };
}

const msOf = (texts: readonly string[] | undefined, kind: RuleTime["kind"]): number[] =>
  (texts ?? [])
    .map((text) => ruleTime(text, "time", ""))
    .filter((one) => one.kind === kind)
    .map(({ ms }) => ms);

export class RuleSchedule {
  readonly #spec: RuleSpec;
  readonly #rule: Rule;
  readonly #zone: Zone;
  readonly #times: LocalTimes;
  /** The instant of UNTIL; Infinity if UNTIL is a local time, a date or absent. */
  readonly #lastMs: number;
  /** The additional times that are local times, to which UNTIL does not apply; null if there are none. */
  readonly #addedTimes: LocalTimes | null;
  readonly #added: readonly number[];
  readonly #left: ReadonlySet<number>;

  /** @param spec a validated spec, as returned by `ruleSpec` */
  constructor(spec: RuleSpec) {
    const { rdate, exdate } = spec;
    this.#spec = spec;
    this.#rule = parseRule(spec.rule);
    this.#zone = zoneOf(spec.zone);
    const { until } = this.#rule;
    this.#lastMs = until?.kind === "instant" ? until.ms : Number.POSITIVE_INFINITY;
    this.#added = sortedUnique(msOf(rdate, "instant"));
    this.#left = new Set(msOf(exdate, "instant"));
    const times = ruleTimes(this.#rule, ruleTime(spec.start, "start", "start").ms);
    const leftDays = msOf(exdate, "day").map((ms) => ms / dayMs);
    const left = msOf(exdate, "local");
    this.#times = exdate === undefined ? times : new DatedTimes(times, [], left, leftDays);
    const added = [...msOf(rdate, "local"), ...msOf(rdate, "day")];
    this.#addedTimes = added.length === 0 ? null : new DatedTimes(null, added, left, leftDays);
  }

  next(afterMs: number): number | null {
    const { gap, overlap } = this.#spec;
    const nextOf = (times: LocalTimes | null, after: number) =>
      (times && nextInZone(times, this.#zone, gap, overlap, after)) ?? Number.POSITIVE_INFINITY;
    for (let after = time(afterMs); ; ) {
      const added = this.#added[lowerBound(this.#added, Math.floor(after) + 1)] ?? Number.POSITIVE_INFINITY;
      const ruled = nextOf(this.#times, after);
      const next = Math.min(
        ruled > this.#lastMs ? Number.POSITIVE_INFINITY : ruled,
        nextOf(this.#addedTimes, after),
        added,
      );
      if (next >= endOfTime) return null;
      if (!this.#left.has(next)) return next;
      after = next;
    }
  }

  previous(beforeMs: number): number | null {
    const { gap, overlap } = this.#spec;
    const previousOf = (times: LocalTimes | null, before: number) =>
      (times && previousInZone(times, this.#zone, gap, overlap, before)) ?? Number.NEGATIVE_INFINITY;
    for (let before = time(beforeMs); ; ) {
      const added = this.#added[lowerBound(this.#added, before) - 1] ?? Number.NEGATIVE_INFINITY;
      const ruled = previousOf(this.#times, Math.min(before, this.#lastMs + 1000));
      const previous = Math.max(ruled, previousOf(this.#addedTimes, before), added);
      if (previous < 0) return null;
      if (!this.#left.has(previous)) return previous;
      before = previous;
    }
  }

  words(): string {
    return ruleWords(this.#rule, this.#spec);
  }
}
