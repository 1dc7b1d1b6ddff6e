import type { AuditEntry } from "./words.ts";

/** A group with fewer entries than this is split into single lines. */
const least = 4;
/** The longest time in ms between two consecutive entries of a group. */
const gapMs = 60_000;

/**
 * Groups consecutive entries that have the same author, act, kind of object and reason and are at most `gapMs` apart, such as the
 * entries of one bulk change.
 * @param entries newest first
 * @returns groups in the same order; entries that would form a group of fewer than `least` are single groups
 */
export function bunchesOf(entries: readonly AuditEntry[]): AuditEntry[][] {
  const bunches: AuditEntry[][] = [];
  for (const entry of entries) {
    const last = bunches.at(-1);
    if (last && isAlike(last.at(-1) as AuditEntry, entry)) last.push(entry);
    else bunches.push([entry]);
  }
  return bunches.flatMap((bunch) => (bunch.length < least ? bunch.map((entry) => [entry]) : [bunch]));
}

const isAlike = (a: AuditEntry, b: AuditEntry): boolean =>
  a.who === b.who &&
  a.act === b.act &&
  a.about === b.about &&
  a.why === b.why &&
  Date.parse(a.at) - Date.parse(b.at) <= gapMs;
