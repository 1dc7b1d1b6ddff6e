import type { ReadStream, WriteStream } from "node:tty";

const enter = "\u001b[?1049h\u001b[?25l\u001b[?7l\u001b[2J";
const leave = "\u001b[?7h\u001b[?25h\u001b[?1049l";
const beginUpdate = "\u001b[?2026h\u001b[H";
const endUpdate = "\u001b[J\u001b[?2026l";

/** Signals that end this process; the terminal is restored first. */
const ending = { SIGTERM: 143, SIGHUP: 129, SIGQUIT: 131 } as const;

const keys: Readonly<Record<string, string>> = {
  "\u0003": "ctrl-c",
  "\u001a": "ctrl-z",
  "\u001b": "escape",
  "\u001b[A": "up",
  "\u001b[B": "down",
  "\u001bOA": "up",
  "\u001bOB": "down",
  "\u001b[5~": "page-up",
  "\u001b[6~": "page-down",
  "\u001b[H": "home",
};

export interface FullScreenOptions {
  onKey: (key: string) => void;
  /** Called when the terminal was resized, or when this process was resumed after Ctrl-Z; the caller then redraws. */
  onDraw: () => void;
}

/**
 * Uses the whole terminal: its alternate screen, single key presses, and no cursor. The terminal is restored when the process
 * exits, also after an uncaught error or by SIGTERM, SIGHUP or SIGQUIT.
 */
export class FullScreen {
  readonly #options: FullScreenOptions;
  readonly #input: ReadStream;
  readonly #output: WriteStream;
  readonly #restore: (() => void)[] = [];
  #open = false;

  constructor(options: FullScreenOptions, input = process.stdin as ReadStream, output = process.stdout as WriteStream) {
    this.#options = options;
    this.#input = input;
    this.#output = output;
  }

  open(): void {
    const heard = (data: Buffer) => this.#hear(data.toString());
    this.#input.on("data", heard);
    this.#output.on("resize", this.#options.onDraw);
    // The exit handler also runs when an uncaught error ends the process, so the terminal is restored before the error is printed.
    const onExit = () => this.#leave();
    process.on("exit", onExit);
    this.#restore.push(
      () => this.#input.off("data", heard).pause(),
      () => this.#output.off("resize", this.#options.onDraw),
      () => process.off("exit", onExit),
    );
    for (const [name, code] of Object.entries(ending)) {
      const end = () => process.exit(code);
      process.on(name, end);
      this.#restore.push(() => process.off(name, end));
    }
    this.#enter();
    this.#options.onDraw();
  }

  draw(lines: readonly string[]): void {
    if (!this.#open) return;
    this.#output.write(`${beginUpdate}${lines.map((line) => `${line}\u001b[K`).join("\r\n")}${endUpdate}`);
  }

  close(): void {
    this.#leave();
    for (const restore of this.#restore.splice(0)) restore();
  }

  #enter(): void {
    this.#input.setRawMode?.(true);
    this.#input.resume();
    this.#output.write(enter);
    this.#open = true;
  }

  #leave(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#output.write(leave);
    this.#input.setRawMode?.(false);
  }

  /** Handles input from the terminal; one chunk may contain several keys. */
  #hear(text: string): void {
    for (const [key] of text.matchAll(/\p{Cc}(?:\[[\d;]*[A-Za-z~]|O[A-Z])|[\s\S]/gu)) {
      const name = keys[key] ?? key;
      if (name === "ctrl-z") this.#suspend();
      else this.#options.onKey(name);
    }
  }

  /** Suspends the process after Ctrl-Z: restores the terminal for the shell, and draws again when the process is resumed. */
  #suspend(): void {
    this.#leave();
    process.once("SIGCONT", () => {
      this.#enter();
      this.#options.onDraw();
    });
    process.kill(process.pid, "SIGSTOP");
  }
}
