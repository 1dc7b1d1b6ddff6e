/**
 * The hash chain over the audit entries, and its check: each row's hash includes the hash of the row before it. See docs/access/audit.md.
 */
import { createHash } from "node:crypto";
import { CarillonError } from "../base/errors.ts";

/** A row's number in the chain, and its hash. */
export interface ChainPlace {
  seq: number;
  /** SHA-256, as 64 hexadecimal digits. */
  hash: string;
}

export interface AuditChain {
  /** The number and hash of the last row. */
  head: ChainPlace;
  /** The number and hash of the row just before the first row that has not been pruned. */
  anchor: ChainPlace;
  /** Number of rows that are older than the chain and therefore not part of it; null: they were pruned. */
  olderRows: number | null;
  /** Number of newer rows without a number in the chain: they were written while the trigger was off. */
  unchained: number;
}

export interface ChainRow extends ChainPlace {
  /** The row's content as the JSON text that was hashed. */
  content: string;
}

/** The first fault of the chain. */
export interface ChainFault {
  /** The row's number; null: the fault does not concern a single row. */
  seq: number | null;
  what: string;
}

export const placeText = ({ seq, hash }: ChainPlace): string => `${seq}:${hash}`;

/** Parses "NUMBER:HASH". @param what the name of the option, for the error @throws OPTION_INVALID */
export function parsePlace(text: string, what: string): ChainPlace {
  const [, seq = "", hash = ""] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text) ?? [];
  if (hash !== "") return { seq: Number(seq), hash };
  throw new CarillonError("OPTION_INVALID", `${what} cannot be ${JSON.stringify(text.slice(0, 100))}`, {
    hint: "Give a row's place and its hash, such as 4711:9f86d0… with 64 hexadecimal digits, as carillon audit verify prints them.",
    path: what,
  });
}

const isSame = (a: ChainPlace, b: ChainPlace): boolean => a.seq === b.seq && a.hash === b.hash;

/** Returns the new anchor if the entry records that the audit was pruned; null for any other entry. */
function prunedTo(content: string): string | null {
  // A cheap test, so that only possible prune entries are parsed.
  if (!content.includes('"prune"')) return null;
  const { act, about, after } = JSON.parse(content) as {
    act: string;
    about: string;
    after: { anchor?: string } | null;
  };
  return act === "prune" && about === "audit" ? (after?.anchor ?? null) : null;
}

/**
 * Checks a chain. The caller passes the rows that are older than the chain to `older`, the chain's rows in order to `row`, and then calls
 * `end`. Only the first fault is recorded; later rows are not checked.
 */
export class ChainCheck {
  readonly #chain: AuditChain;
  /** Rows that the chain must contain: the store's head and, if given, a head that was recorded outside the store. */
  readonly #heads: readonly (ChainPlace & { of: string })[];
  readonly #older = createHash("sha256");
  #olderRows = 0;
  #rows = 0;
  #last: ChainPlace;
  #isAnchorNamed: boolean;
  #fault: ChainFault | null = null;

  /** @param head a head that was recorded outside the store; null: none is given */
  constructor(chain: AuditChain, head: ChainPlace | null) {
    this.#chain = chain;
    this.#last = chain.anchor;
    this.#heads = [{ ...chain.head, of: "the store's head" }, ...(head ? [{ ...head, of: "the given head" }] : [])];
    this.#isAnchorNamed = chain.anchor.seq === 0 && chain.olderRows !== null;
    for (const one of this.#heads) {
      if (one.seq < chain.anchor.seq)
        this.#found(null, `${one.of} is row ${one.seq}, and the rows up to ${chain.anchor.seq} were pruned`);
      else this.#compare(one, chain.anchor);
    }
  }

  get fault(): ChainFault | null {
    return this.#fault;
  }

  /** Adds a row that is older than the chain; the caller passes these rows in the order of their numbers. */
  older(content: string): void {
    this.#olderRows++;
    this.#older.update(createHash("sha256").update(content).digest());
  }

  row({ seq, hash, content }: ChainRow): void {
    if (this.#fault) return;
    const expected = this.#last.seq + 1;
    if (seq !== expected) {
      this.#found(
        expected,
        seq > expected ? `row ${expected} is missing: ${seq} comes next` : `row ${seq} comes twice`,
      );
      return;
    }
    const previous = Buffer.from(this.#last.hash, "hex");
    if (createHash("sha256").update(previous).update(content).digest("hex") !== hash) {
      this.#found(seq, `row ${seq} does not fit its hash: it was changed, or the row before it was`);
      return;
    }
    this.#last = { seq, hash };
    this.#rows++;
    for (const head of this.#heads) this.#compare(head, this.#last);
    if (prunedTo(content) === placeText(this.#chain.anchor)) this.#isAnchorNamed = true;
  }

  /** Ends the check. @returns the last valid row, the number of valid rows, the number of older rows, and the first fault */
  end(): { head: ChainPlace; rows: number; olderRows: number; fault: ChainFault | null } {
    const { anchor, olderRows, unchained } = this.#chain;
    if (!this.#fault) {
      for (const { of, seq } of this.#heads)
        if (seq > this.#last.seq) this.#found(null, `${of} is row ${seq}, and the last row is ${this.#last.seq}`);
      if (olderRows !== null && this.#olderRows !== olderRows)
        this.#found(null, `there were ${olderRows} rows from before the chain, and ${this.#olderRows} are left`);
      if (olderRows !== null && anchor.seq === 0 && this.#older.digest("hex") !== anchor.hash)
        this.#found(null, "a row from before the chain was changed: together they do not fit their digest");
      if (!this.#isAnchorNamed)
        this.#found(null, `the rows up to ${anchor.seq} are gone, and no entry says that they were pruned`);
      if (unchained > 0) this.#found(null, `${unchained} rows have no place in the chain`);
    }
    return { head: this.#last, rows: this.#rows, olderRows: this.#olderRows, fault: this.#fault };
  }

  #compare(head: ChainPlace & { of: string }, row: ChainPlace): void {
    if (head.seq === row.seq && !isSame(head, row))
      this.#found(row.seq, `row ${row.seq} has another hash than ${head.of} says: the rows up to it were written anew`);
  }

  #found(seq: number | null, what: string): void {
    this.#fault ??= { seq, what };
  }
}
