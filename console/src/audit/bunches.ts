import type { AuditEntry } from "./words.ts";

/** Fewer alike entries than this stay lines of their own. */
const least = 4;
/** Entries of one act on many things follow each other by no more than this. */
const gapMs = 60_000;

/**
 * Groups entries that one act on many things made: by the same author, of the same kind, with the same reason, one after the other.
 * @param entries newest first
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
