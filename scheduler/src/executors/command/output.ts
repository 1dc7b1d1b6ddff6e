import { limits } from "../../base/limits.ts";

/** `note` is Carillon's own remark in the command's log. */
export type OutputStream = "stdout" | "stderr" | "note";

export interface OutputBudget {
  /** Bytes that may still be logged, of both streams together; below 0 once it was too much. */
  left: number;
  /** Bytes read and thrown away. */
  cut: number;
  /** Called once, when the log ends before the output. */
  exhausted(): void;
}

/**
 * Splits the bytes of one stream into lines, in memory bounded by one line however much arrives. Invalid UTF-8 becomes U+FFFD, as does
 * NUL, which the store cannot hold. Excess output is cut and marked, but still read: a program that blocks on a full pipe would hang for
 * good.
 */
export class LineReader {
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  readonly #budget: OutputBudget;
  readonly #line: (line: string) => void;
  readonly #lineBytes: number;
  #held = "";
  #heldBytes = 0;
  /** Bytes of the present line beyond its bound. */
  #over = 0;
  /** The last lines of the output, logged or not. */
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
      // Nothing is logged after this: with a gap in it, the log would look complete.
      if (this.#budget.left >= 0) this.#budget.exhausted();
      this.#budget.left = -1;
      this.#budget.cut += logged;
    }
  }
}
