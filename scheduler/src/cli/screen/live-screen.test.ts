import type { WriteStream } from "node:tty";
import { afterEach, describe, expect, it } from "vitest";
import { LiveScreen } from "./live-screen.ts";

/** A simulated terminal that supports the few control sequences used by the screen. */
class Glass {
  readonly columns = 40;
  readonly isTTY = true;
  lines: string[] = [""];
  row = 0;
  hidden = false;

  write(text: string): boolean {
    for (const part of text.match(/\p{Cc}\[\??\d*[A-Za-z]|\r|\n|\P{Cc}+/gu) ?? []) this.#take(part);
    return true;
  }

  #take(part: string): void {
    const up = /^\p{Cc}\[(\d+)A$/u.exec(part);
    if (up) this.row = Math.max(0, this.row - Number(up[1]));
    else if (part === "\n") this.lines[++this.row] ??= "";
    else if (part === "\u001b[J") this.lines.length = this.row + 1;
    else if (part === "\u001b[?25l" || part === "\u001b[?25h") this.hidden = part.endsWith("l");
    if (part === "\u001b[J") this.lines[this.row] = "";
    if (!part.startsWith("\u001b") && part !== "\r" && part !== "\n") this.lines[this.row] = part;
  }

  get shown(): string[] {
    return this.lines.filter((line, at) => line !== "" || at < this.lines.length - 1);
  }
}

let screen: LiveScreen | undefined;
afterEach(() => screen?.close());

describe("the live screen", () => {
  it("redraws in place, shrinks, and keeps messages above it", () => {
    const glass = new Glass();
    screen = new LiveScreen(glass as unknown as WriteStream);
    expect(glass.hidden).toBe(true);
    screen.draw(["one", "two", "three"]);
    screen.draw(["uno", "due"]);
    expect(glass.shown).toEqual(["uno", "due"]);
    screen.above("failed: bank");
    expect(glass.shown).toEqual(["failed: bank", "uno", "due"]);
    screen.draw(["1", "2", "3"]);
    expect(glass.shown).toEqual(["failed: bank", "1", "2", "3"]);
  });

  it("prints a handler's output above itself in whole lines, and restores standard output", () => {
    const glass = new Glass();
    const before = process.stdout.write;
    screen = new LiveScreen(glass as unknown as WriteStream);
    screen.draw(["block"]);
    process.stdout.write("hel");
    expect(glass.shown).toEqual(["block"]);
    process.stdout.write("lo\nwor");
    expect(glass.shown).toEqual(["hello", "block"]);
    screen.close();
    screen = undefined;
    expect(glass.shown).toEqual(["hello", "wor", "block"]);
    expect(process.stdout.write).toBe(before);
    expect(glass.hidden).toBe(false);
  });
});
