import { limits } from "../../base/limits.ts";

/** The source of a log line; `note` is a remark by Carillon itself. */
export type OutputStream = "stdout" | "stderr" | "note";

export interface OutputBudget {
  /** How many more bytes of both streams together may be logged; negative once the limit has been exceeded. */
  left: number;
  /** The number of bytes that were read and not logged. */
  cut: number;
  /** Called once, for the first line that is not logged because the output exceeds the limit. */
  exhausted(): void;
}

/**
 * Splits the bytes of one stream into lines; keeps only the current line and the last few lines in memory. Invalid UTF-8 becomes U+FFFD,
 * and so does NUL, which PostgreSQL cannot store. Output beyond the limits is not logged but still read, because otherwise the program
 * would block on a full pipe.
 */
export class LineReader {
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  readonly #budget: OutputBudget;
  readonly #line: (line: string) => void;
  readonly #lineBytes: number;
  #held = "";
  #heldBytes = 0;
  /** By how many bytes the current line exceeds the length limit. */
  #over = 0;
  /** The last lines of the output, including lines that were not logged. */
  readonly last: string[] = [];

  constructor(budget: OutputBudget, line: (line: string) => void, lineBytes: number = limits.commandLineBytes) {
    this.#budget = budget;
    this.#line = line;
    this.#lineBytes = lineBytes;
  }

  push(chunk: Uint8Array): void {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      this.#take(chunk.subarray(from, end));
      this.#endLine();
      from = end + 1;
    }
    if (from < chunk.length) this.#take(chunk.subarray(from));
  }

  end(): void {
    if (this.#heldBytes > 0) this.#endLine();
  }

  #take(bytes: Uint8Array): void {
    const room = Math.max(0, this.#lineBytes - this.#heldBytes);
    const kept = bytes.length > room ? bytes.subarray(0, room) : bytes;
    this.#held += this.#decoder.decode(kept, { stream: true });
    this.#heldBytes += bytes.length;
    this.#over += bytes.length - kept.length;
  }

  #endLine(): void {
    let line = this.#held + this.#decoder.decode();
    if (this.#over > 0) line += ` [line cut: ${this.#over} more bytes]`;
    else if (line.endsWith("\r")) line = line.slice(0, -1);
    line = line.replaceAll("\0", "\uFFFD");
    const size = this.#heldBytes + 1;
    const over = this.#over;
    this.#held = "";
    this.#heldBytes = 0;
    this.#over = 0;

    this.last.push(line);
    if (this.last.length > limits.commandLastLines) this.last.shift();
    this.#budget.cut += over;
    const logged = size - over;
    if (this.#budget.left >= logged) {
      this.#budget.left -= logged;
      this.#line(line);
    } else {
      // No further line is logged, even if it is short enough: a gap within the log could be overlooked.
      if (this.#budget.left >= 0) this.#budget.exhausted();
      this.#budget.left = -1;
      this.#budget.cut += logged;
    }
  }
}
