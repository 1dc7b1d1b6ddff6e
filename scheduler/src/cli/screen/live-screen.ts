import type { WriteStream } from "node:tty";
import { styledWidth } from "./styled-text.ts";

const hideCursor = "\u001b[?25l";
const showCursor = "\u001b[?25h";
const beginUpdate = "\u001b[?2026h";
const endUpdate = "\u001b[?2026l";

type Write = typeof process.stdout.write;

/**
 * A block of lines at the bottom of the terminal, redrawn in place. Other output of this process (such as a handler's console.log) is
 * written above the block, where it stays, instead of into the middle of it.
 */
export class LiveScreen {
  readonly #stream: WriteStream;
  readonly #write: Write;
  readonly #restore: (() => void)[] = [];
  #block: string[] = [];
  #unfinished = "";

  constructor(stream: WriteStream = process.stdout as WriteStream) {
    this.#stream = stream;
    this.#write = stream.write.bind(stream) as Write;
    this.#write(hideCursor);
    // The exit handler also runs when a second Ctrl-C ends the process at once: it shows the cursor again.
    const onExit = () => void this.#write(showCursor);
    process.once("exit", onExit);
    this.#restore.push(() => process.off("exit", onExit));
    this.#intercept(process.stdout);
    if (process.stderr.isTTY) this.#intercept(process.stderr);
  }

  draw(lines: string[]): void {
    const text = lines.map((line) => `${line}\u001b[K`).join("\n");
    this.#write(`${beginUpdate}${this.#toTop()}${text}\n\u001b[J${endUpdate}`);
    this.#block = lines;
  }

  /** Writes lines above the block, where they stay. */
  above(text: string): void {
    const block = this.#block;
    this.#write(`${beginUpdate}${this.#toTop()}\u001b[J${text}\n`);
    this.#block = [];
    this.draw(block);
  }

  /** Leaves the block on the screen, and restores the terminal. */
  close(): void {
    if (this.#unfinished !== "") this.above(this.#unfinished);
    this.#unfinished = "";
    for (const restore of this.#restore.splice(0)) restore();
    this.#write(showCursor);
  }

  /** Moves the cursor to the block's first line. If the terminal has become narrower, the block's lines take more rows than before. */
  #toTop(): string {
    const columns = this.#stream.columns || 80;
    const rows = this.#block.reduce((sum, line) => sum + Math.max(1, Math.ceil(styledWidth(line) / columns)), 0);
    return rows === 0 ? "\r" : `\r\u001b[${rows}A`;
  }

  #intercept(stream: NodeJS.WriteStream): void {
    const { write } = stream;
    stream.write = ((chunk: string | Uint8Array, ...rest: unknown[]) => {
      const text = this.#unfinished + (typeof chunk === "string" ? chunk : Buffer.from(chunk).toString());
      const end = text.lastIndexOf("\n");
      this.#unfinished = text.slice(end + 1);
      if (end >= 0) this.above(text.slice(0, end));
      const done = rest.at(-1);
      if (typeof done === "function") queueMicrotask(() => done(null));
      return true;
    }) as Write;
    this.#restore.push(() => {
      stream.write = write;
    });
  }
}
