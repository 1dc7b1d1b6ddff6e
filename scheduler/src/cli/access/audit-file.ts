/** Reads and writes an exported audit, whose lines are JSON: see docs/access/audit.md. */
import { createReadStream } from "node:fs";
import { type AuditChain, type ChainPlace, parsePlace, placeText } from "../../access/audit-chain.ts";
import { CarillonError, messageOf } from "../../base/errors.ts";

/** One audit row. `place` is its number and hash in the hash chain; null if the row is older than the chain. */
export interface ChainLine {
  place: ChainPlace | null;
  content: string;
}

const format = 1;

export const firstLine = ({ anchor, olderRows, head }: AuditChain): string =>
  JSON.stringify({
    carillon: "audit",
    format,
    anchor: placeText(anchor),
    older: olderRows === null ? null : { rows: olderRows },
    head: placeText(head),
  });

/** Formats a row as a line. The content is written as the text that was hashed. */
export const rowLine = ({ place, content }: ChainLine): string =>
  place === null
    ? `{"content":${content}}`
    : `{"seq":${place.seq},"hash":${JSON.stringify(place.hash)},"content":${content}}`;

export const lastLine = (head: ChainPlace): string => JSON.stringify({ end: true, head: placeText(head) });

const rowShape = /^\{(?:"seq":(\d{1,15}),"hash":"([0-9a-f]{64})",)?"content":(\{.*\})\}$/s;

/** Reads an exported audit line by line, because the file may be larger than memory. */
export class AuditFile {
  readonly #path: string;
  readonly #lines: AsyncIterator<string>;
  #number = 0;
  /** The chain's head from the file's last line; null until that line has been read. */
  end: ChainPlace | null = null;

  constructor(path: string) {
    this.#path = path;
    this.#lines = this.#read();
  }

  /** Reads the first line, which describes the chain. @throws FILE_INVALID */
  async chain(): Promise<AuditChain> {
    const text = await this.#next();
    const first = this.#parsed(text ?? "") as { carillon?: string; format?: number; anchor?: string; head?: string };
    if (first.carillon !== "audit") throw this.#invalid("is not an exported audit");
    if (first.format !== format)
      throw this.#invalid(`has the format ${first.format}, and this Carillon reads ${format}`);
    const { older } = first as { older?: { rows: number } | null };
    return {
      anchor: parsePlace(String(first.anchor), "anchor"),
      head: parsePlace(String(first.head), "head"),
      olderRows: older === null ? null : Number(older?.rows),
      unchained: 0,
    };
  }

  /** Reads the rows, and the last line. @throws FILE_INVALID */
  async *rows(): AsyncIterable<ChainLine> {
    for (let text = await this.#next(); text !== null; text = await this.#next()) {
      if (this.end) throw this.#invalid("goes on after its last line");
      const [, seq, hash = "", content] = rowShape.exec(text) ?? [];
      if (content !== undefined) yield { place: seq === undefined ? null : { seq: Number(seq), hash }, content };
      else {
        const { end, head } = this.#parsed(text) as { end?: boolean; head?: string };
        if (!end) throw this.#invalid("has a line that is no row");
        this.end = parsePlace(String(head), "head");
      }
    }
  }

  async #next(): Promise<string | null> {
    const { done, value } = await this.#lines.next();
    if (done) return null;
    this.#number++;
    return value;
  }

  /** Yields the lines. Only LF ends a line, because texts in the JSON may contain other line separators. */
  async *#read(): AsyncGenerator<string> {
    let rest = "";
    try {
      for await (const chunk of createReadStream(this.#path, "utf8")) {
        const lines = (rest + chunk).split("\n");
        rest = lines.pop() ?? "";
        yield* lines;
      }
    } catch (error) {
      throw new CarillonError("FILE_INVALID", `${this.#path} cannot be read: ${messageOf(error)}`, { cause: error });
    }
    if (rest !== "") yield rest;
  }

  #parsed(text: string): unknown {
    try {
      const value: unknown = JSON.parse(text);
      if (typeof value === "object" && value !== null) return value;
    } catch {
      // The text is not JSON; the error below reports it with the line's number.
    }
    throw this.#invalid("is no line of JSON");
  }

  #invalid(what: string): CarillonError {
    return new CarillonError("FILE_INVALID", `${this.#path}, line ${this.#number}, ${what}`, {
      hint: "Give a file that carillon audit export wrote.",
      path: this.#path,
    });
  }
}
