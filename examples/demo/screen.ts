/**
 * Prints lines for human readers. On a terminal they are cut to its width, and coloured if it supports colours; in a pipe they are complete
 * and without colours.
 */
import type { WriteStream } from "node:tty";

export type Paint = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";

const codes: Record<Paint, [number, number]> = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
};

export class Screen {
  readonly #stream: WriteStream;
  readonly #colours: boolean;

  constructor(stream: WriteStream) {
    this.#stream = stream;
    // hasColors respects NO_COLOR, FORCE_COLOR and TERM.
    this.#colours = stream.isTTY === true && stream.hasColors();
  }

  get width(): number {
    return this.#stream.isTTY ? this.#stream.columns || 80 : Number.POSITIVE_INFINITY;
  }

  /** Prints one line, cut with … at the terminal's width. */
  line(text = "", paint?: Paint): void {
    const { width } = this;
    const fitting = text.length > width ? `${text.slice(0, Math.max(width - 1, 1))}…` : text;
    this.#stream.write(`${this.#painted(fitting, paint)}\n`);
  }

  /** Prints text broken at single spaces; the second and later lines are indented by `hanging`. */
  prose(text: string, hanging = "", paint?: Paint): void {
    const most = Math.min(this.width, 110);
    const [first = "", ...words] = text.split(/(?<=\S) (?=\S)/);
    let line = first;
    for (const word of words) {
      if (line.length + 1 + word.length > most) {
        this.line(line, paint);
        line = hanging + word;
      } else line += ` ${word}`;
    }
    this.line(line, paint);
  }

  #painted(text: string, paint: Paint | undefined): string {
    if (!this.#colours || paint === undefined) return text;
    const [on, off] = codes[paint];
    return `\x1b[${on}m${text}\x1b[${off}m`;
  }
}

export const count = (number: number) => number.toLocaleString("en-US");
export const runsOf = (number: number) => `${count(number)} ${number === 1 ? "run" : "runs"}`;

const two = (number: number) => String(number).padStart(2, "0");

/** Formats the time of day in this machine's zone, for example 14:03:20.001. */
export function timeOfDay(ms: number, { millis = true } = {}): string {
  const date = new Date(ms);
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return millis ? `${time}.${String(date.getMilliseconds()).padStart(3, "0")}` : time;
}

/** Formats a time in the given zone, for example 2026-11-30 00:00. */
export function zonedTime(ms: number, zone: string): string {
  const format = new Intl.DateTimeFormat("sv-SE", { timeZone: zone, dateStyle: "short", timeStyle: "short" });
  return format.format(ms);
}

export function lateText(lateMs: number): string {
  if (lateMs < 0) return `${count(-lateMs)} ms early`;
  return lateMs === 0 ? "on time" : lateMs < 2_000 ? `${lateMs} ms late` : `${(lateMs / 1_000).toFixed(1)} s late`;
}

/** Formats a duration as in "in 4 min", rounded down. */
export function inWords(ms: number): string {
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 1) return `in ${Math.max(0, Math.floor(ms / 1_000))} s`;
  if (minutes < 120) return `in ${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `in ${hours} h` : `in ${Math.floor(hours / 24)} days`;
}
