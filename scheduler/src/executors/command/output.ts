import { limits } from "../../base/limits.ts";

/** `note`: a remark by Carillon itself in the command's log. */
export type OutputStream = "stdout" | "stderr" | "note";

export interface OutputBudget {
  /** How many bytes of both streams together may still be logged; below 0 once the limit is exceeded. */
  left: number;
  /** How many bytes were read and discarded. */
  cut: number;
  /** Called once, when the log ends before the output does. */
  exhausted(): void;
}

/**
 * Splits the bytes of one stream into lines, with memory for one line only, however much arrives. Invalid UTF-8 becomes U+FFFD, as does
 * NUL, which the store cannot hold. Excess output is cut and marked, but still read, because a program that blocks on a full pipe would
 * hang for ever.
 */
export class LineReader {
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  readonly #budget: OutputBudget;
  readonly #line: (line: string) => void;
  readonly #lineBytes: number;
  #held = "";
  #heldBytes = 0;
  /** How many bytes of the present line are beyond its limit. */
  #over = 0;
  /** The last lines of the output, whether they were logged or not. */
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
      // Nothing more is logged after this: if shorter lines followed, the log would seem complete despite the gap.
      if (this.#budget.left >= 0) this.#budget.exhausted();
      this.#budget.left = -1;
      this.#budget.cut += logged;
    }
  }
}
