/** Computes the occurrences of an event: its start, its rules and its additional times, without excluded and replaced occurrences. */
import { dayMs, type LocalTimes } from "../local-times.ts";
import type { Rule } from "../rrule/rule.ts";
import { ruleTimes } from "../rrule/rule-times.ts";
import { wrong } from "./content-lines.ts";
import { type IcsEvent, inSeries, type RuleLine } from "./event.ts";
import type { Moment } from "./times.ts";

export interface OccurrenceDays {
  first: number;
  last: number;
}

/**
 * Yields the first and last day of each occurrence in the window, and of some outside it, which the caller leaves out.
 * @param replaced events that replace occurrences of this event and whose own days are counted separately
 * @param dayOf returns the day of a local time of the event
 * @throws CALENDAR_INVALID for a rule that never matches
 */
export function* seriesTimes(
  event: IcsEvent,
  replaced: readonly IcsEvent[],
  { fromDay, toDay }: { fromDay: number; toDay: number },
  dayOf: (local: number) => number,
  tell: (line: number, message: string) => void,
): Generator<OccurrenceDays> {
  const start = event.start as Moment;
  const rules = event.rules.map((line) => timesOf(line, event));
  const except = event.exceptRules.map((line) => timesOf(line, event));
  const moments = [...event.left, ...replaced.flatMap(({ occurrence }) => occurrence?.moment ?? [])];
  const left = new Set(moments.map((moment) => inSeries(event, moment)));
  const leftDays = new Set(moments.filter(({ kind }) => kind === "day").map(({ ms }) => ms / dayMs));
  const isLeft = (local: number) =>
    left.has(local) || leftDays.has(dayOf(local)) || except.some((times) => times.nextLocal(local) === local);
  const changes = laterChanges(event, replaced);
  /** Returns the days of one occurrence; an empty list if the occurrence is excluded or cancelled. */
  const daysAt = (local: number, lengthMs: number): OccurrenceDays[] => {
    if (isLeft(local)) return [];
    const change = changes.find(({ from }) => local >= from);
    if (change?.isCancelled) return [];
    const [at, length] = change ? [local + change.shiftMs, change.lengthMs] : [local, lengthMs];
    return [{ first: dayOf(at), last: dayOf(at + Math.max(0, length - 1000)) }];
  };
  // RFC 5545 does not define whether a start that does not match the event's own rule is an occurrence. Here such a start is no
  // occurrence, as in schedules.
  if (rules.length === 0) yield* daysAt(start.ms, event.lengthMs);
  else if (!rules.some((times) => times.nextLocal(start.ms) === start.ms))
    tell(event.startLine, "DTSTART is not one of the days of its RRULE, and does not count");
  for (const { ms, lengthMs } of event.added) yield* daysAt(ms, lengthMs);
  // The search begins and ends a day outside the window, because local times in the event's zone may differ by up to a day from the
  // window's zone.
  const longest = Math.max(...[event, ...changes].map(({ lengthMs }) => lengthMs));
  const shifts = [0, ...changes.map(({ shiftMs }) => shiftMs)];
  const fromMs = (fromDay - 1) * dayMs - longest - Math.max(...shifts);
  const toMs = (toDay + 2) * dayMs - Math.min(...shifts);
  for (const times of rules)
    for (let at = times.nextLocal(fromMs); at < toMs; at = times.nextLocal(at + 1000))
      yield* daysAt(at, event.lengthMs);
}

/** Returns the changes that apply to an occurrence and all later occurrences (RANGE=THISANDFUTURE), latest first. */
function laterChanges(event: IcsEvent, replaced: readonly IcsEvent[]) {
  return replaced
    .flatMap(({ occurrence, start, lengthMs, isCancelled }) => {
      if (!occurrence?.andLater) return [];
      const from = inSeries(event, occurrence.moment);
      return [{ from, shiftMs: start === null ? 0 : inSeries(event, start) - from, lengthMs, isCancelled }];
    })
    .sort((a, b) => b.from - a.from);
}

function timesOf({ rule: given, property }: RuleLine, event: IcsEvent): LocalTimes {
  const start = event.start as Moment;
  const rule: Rule = {
    ...given,
    // An event for whole days has no time of day (RFC 5545, section 3.3.10), so the rule's parts about times are ignored.
    ...(start.kind === "day" ? { hours: null, minutes: null, seconds: null } : {}),
    until: given.until && untilOf({ ...given.until, zone: null }, event),
  };
  if (ruleTimes({ ...rule, until: null, count: null }, start.ms).nextLocal(start.ms) === Number.POSITIVE_INFINITY)
    throw wrong(property, "the rule names a date that never comes", "Mend the days that it names.");
  return ruleTimes(rule, start.ms);
}

/** Converts UNTIL to a local time of the event. An UNTIL that is only a date includes the whole day. */
function untilOf(until: Moment, event: IcsEvent): Rule["until"] {
  if (event.start?.kind !== "day" && until.kind === "day") return { kind: "day", ms: until.ms };
  return { kind: event.start?.kind === "day" ? "day" : "local", ms: inSeries(event, until) };
}
