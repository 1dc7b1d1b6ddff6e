/**
 * Names of a queue's nodes. Curator uses these, where `s` is the server's number of ten digits:
 *
 *   queue            queue-s
 *   queue with ids   queue-|ID|s
 *   priority queue   queue-0XXXXXXXXs (negative priority), queue-1XXXXXXXXs: %08X of its 32 bits
 *   delay queue      queue-|X…|s: epoch ms in upper-case hexadecimal, at least eight digits (eleven from 2004 to 2527)
 *
 * A failed item is put back with a name that contains the number of attempts, so that the count does not depend on any process. Curator
 * reads a time between the last two bars, an id between the first two, and priorities as text, so it can read these names as well:
 *
 *   queue            queue-rN,TIME-s        N attempts so far; the next one not before TIME, hexadecimal epoch ms
 *   queue with ids   queue-rN,TIME|ID|s
 *   priority queue   queue-1XXXXXXXXrN,TIME-s
 *   delay queue      queue-rN,DUE|TIME|s    Java also waits for TIME here; DUE is the original due time
 *
 * With a lock path, s is a new number from the server. Without one, s is the item's first number, so that a repeated request uses the
 * same name, and a lost answer cannot lead to a second item.
 *
 * Curator itself puts a failed item back as `queue-s` in every kind of queue: without time, priority and count.
 */
import { ZooKeeperError } from "../../base/errors.ts";

export interface ItemName {
  /**
   * The sort key: in a delay queue `notBeforeMs`; in a priority queue the priority, or less than any priority if the name has none;
   * otherwise 0. Smaller keys come first; items with equal keys are ordered by `sequence`.
   */
  readonly rank: number;
  readonly sequence: number;
  /** Epoch ms of the earliest next attempt; 0 if the item may be taken at once. */
  readonly notBeforeMs: number;
  /** The number of failed attempts, as the name contains it. */
  readonly failures: number;
  /** Only in a delay queue: the original due time, epoch ms. */
  readonly dueMs?: number;
  readonly priority?: number;
  readonly id?: string;
}

export interface QueueNames {
  /** Parses a node's name. @returns undefined for a node that is not an item of the queue */
  parse(name: string): ItemName | undefined;
  /**
   * Returns the name of an item that has not failed yet and has no id. For an item that failed or has an id, the result differs from its
   * real name; this is how the index finds out that rank and sequence do not determine the name.
   */
  format(rank: number, sequence: number): string;
  /** Returns the name for an item that is put back after a failure, without the server's number. */
  retry(name: ItemName, failures: number, notBeforeMs: number): string;
}

const prefix = "queue-";
export const plainPrefix = prefix;

const sequenceDigits = 10;
const none = { rank: 0, notBeforeMs: 0, failures: 0 };

const plainRetry = /^queue-r(\d{1,9}),([0-9A-F]{8,14})(?:-|\|([^|]+)\|)(?:\d{10}|-\d+)$/;
const idName = /^queue-\|([^|]+)\|(?:\d{10}|-\d+)$/;
const priorityName = /^queue-[01]([0-9A-F]{8})(?:r(\d{1,9}),([0-9A-F]{8,14})-)?(?:\d{10}|-\d+)$/;
const delayRetry = /^queue-r(\d{1,9}),([0-9A-F]{8,14})\|([0-9A-F]{8,14})\|(?:\d{10}|-\d+)$/;

/** @returns the id as names contain it @throws OPTION_INVALID */
export function idInName(id: string): string {
  if (typeof id !== "string" || id === "") {
    const problem = typeof id === "string" ? "empty" : `a ${typeof id}`;
    throw new ZooKeeperError("OPTION_INVALID", `an item's id is ${problem}`, { hint: "give a text, or no id" });
  }
  // As in Curator: a slash would begin a new path element, and a bar a new field.
  return id.replace(/[/|]/g, "_");
}

/** @throws OPTION_INVALID */
export function idPrefix(id: string): string {
  return `${prefix}|${idInName(id)}|`;
}

/** @throws OPTION_INVALID */
export function priorityPrefix(priority: number): string {
  if (!Number.isInteger(priority) || priority !== (priority | 0)) {
    throw new ZooKeeperError("OPTION_INVALID", `priority is ${priority}`, {
      hint: "give a whole number of 32 bits; lower comes first",
    });
  }
  return `${prefix}${priority < 0 ? "0" : "1"}${hex(priority >>> 0)}`;
}

/** @throws OPTION_INVALID */
export function delayPrefix(atMs: number): string {
  if (!Number.isSafeInteger(atMs) || atMs < 0) {
    throw new ZooKeeperError("OPTION_INVALID", `at is ${atMs}`, { hint: "give whole milliseconds since 1970" });
  }
  return `${prefix}|${hex(atMs)}|`;
}

export const plainNames: QueueNames = {
  parse(name) {
    if (!name.startsWith(prefix)) return undefined;
    const sequence = sequenceOf(name);
    if (name.length === prefix.length + sequenceDigits) return { ...none, sequence };
    const [, failures, time, id] = plainRetry.exec(name) ?? [];
    if (time !== undefined) return { rank: 0, sequence, failures: Number(failures), notBeforeMs: timeOf(time), id };
    return { ...none, sequence, id: idName.exec(name)?.[1] };
  },
  format: (_, sequence) => prefix + digits(sequence),
  retry: ({ id }, failures, notBeforeMs) =>
    `${prefix}r${failures},${hex(notBeforeMs)}${id === undefined ? "-" : `|${id}|`}`,
};

export const priorityNames: QueueNames = {
  parse(name) {
    if (!name.startsWith(prefix)) return undefined;
    const [, bits, failures = 0, time] = priorityName.exec(name) ?? [];
    if (bits === undefined) {
      // Curator puts a failed item back without its priority. In the order of text such an item comes before all others.
      const plain = plainNames.parse(name);
      return plain && { ...plain, rank: Number.MIN_SAFE_INTEGER };
    }
    const priority = Number.parseInt(bits, 16) | 0;
    const notBeforeMs = time === undefined ? 0 : timeOf(time);
    return { rank: priority, sequence: sequenceOf(name), failures: Number(failures), notBeforeMs, priority };
  },
  format: (rank, sequence) =>
    rank === Number.MIN_SAFE_INTEGER ? plainNames.format(0, sequence) : priorityPrefix(rank) + digits(sequence),
  retry: (item, failures, notBeforeMs) =>
    item.priority === undefined
      ? plainNames.retry(item, failures, notBeforeMs)
      : `${priorityPrefix(item.priority)}r${failures},${hex(notBeforeMs)}-`,
};

export const delayNames: QueueNames = {
  parse(name) {
    if (!name.startsWith(prefix)) return undefined;
    const sequence = sequenceOf(name);
    const last = name.lastIndexOf("|");
    const before = name.lastIndexOf("|", last - 1);
    const notBeforeMs = before > 0 ? timeOf(name.slice(before + 1, last)) : 0;
    const [, failures, due] = name[prefix.length] === "r" ? (delayRetry.exec(name) ?? []) : [];
    return {
      rank: notBeforeMs,
      sequence,
      notBeforeMs,
      failures: Number(failures ?? 0),
      dueMs: due === undefined ? notBeforeMs : timeOf(due),
    };
  },
  format: (rank, sequence) => delayPrefix(rank) + digits(sequence),
  retry: ({ dueMs = 0 }, failures, notBeforeMs) =>
    `${prefix}r${failures},${hex(dueMs)}${delayPrefix(notBeforeMs).slice(prefix.length)}`,
};

function hex(value: number): string {
  return value.toString(16).toUpperCase().padStart(8, "0");
}

/** Parses a time like Curator: a text that is not a time counts as 0, so that the item is due at once. */
function timeOf(text: string): number {
  const value = /^[0-9A-Fa-f]{1,14}$/.test(text) ? Number.parseInt(text, 16) : 0;
  return Number.isSafeInteger(value) ? value : 0;
}

/** Formats a number as the server does at the end of a name. */
export function digits(sequence: number): string {
  return sequence < 0 ? String(sequence) : String(sequence).padStart(sequenceDigits, "0");
}

/**
 * Returns the server's number: the last ten digits. A number that has overflowed beyond 2^31 − 1 is read without its sign, so that it
 * is still sorted after the others.
 */
function sequenceOf(name: string): number {
  const value = Number(name.slice(-sequenceDigits));
  return Number.isInteger(value) && value >= 0 && value < 2 ** 32 ? value : 0;
}
