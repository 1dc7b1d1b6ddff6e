import type { Clock } from "../../base/clock.ts";
import { messageOf } from "../../base/errors.ts";
import { emitLog, type Log } from "../../base/log.ts";
import type { LogLine } from "../../run/run-record.ts";

const flushEveryMs = 200;
const linesPerFlush = 1_000;
const linesMax = 10_000;
/** The maximum length, in characters, of all waiting lines together and of the lines in one statement. Messages and JSON fields count. */
const waitingMax = 32 * 1024 * 1024;
const sentMax = 4 * 1024 * 1024;
const messageLength = 8_192;

const attributesOf = ({ runId, attempt, fields }: LogLine) => ({
  ...(typeof fields === "object" && !Array.isArray(fields) ? fields : { fields }),
  "carillon.run": runId,
  "carillon.attempt": attempt,
});

/**
 * Collects the log lines of handlers and sends them to the store in batches. The buffer is bounded; if lines had to be dropped, a line in
 * the log reports how many.
 */
export class LogBuffer {
  readonly #write: (lines: LogLine[]) => Promise<unknown>;
  readonly #clock: Clock;
  readonly #log: Log;
  #lines: { line: LogLine; size: number }[] = [];
  #waiting = 0;
  #dropped = 0;
  #flight: Promise<void> | undefined;
  #cancel: (() => void) | undefined;

  constructor(write: (lines: LogLine[]) => Promise<unknown>, clock: Clock, log: Log) {
    this.#write = write;
    this.#clock = clock;
    this.#log = log;
  }

  add(line: LogLine): void {
    const message =
      line.message.length > messageLength ? `${line.message.slice(0, messageLength)} … (cut)` : line.message;
    emitLog(line.level, message, () => attributesOf(line));
    const size = message.length + (line.fields === null ? 0 : JSON.stringify(line.fields).length);
    if (this.#lines.length >= linesMax || this.#waiting + size > waitingMax) {
      this.#dropped++;
      return;
    }
    this.#lines.push({ line: { ...line, message }, size });
    this.#waiting += size;
    this.#cancel ??= this.#clock.after(flushEveryMs, () => void this.flush());
  }

  /**
   * Sends all lines that were added before the call, and resolves when they are written. If the store fails, it also resolves, and
   * the lines are sent later.
   */
  async flush(): Promise<void> {
    this.#cancel?.();
    this.#cancel = undefined;
    while (this.#flight) await this.#flight;
    if (this.#lines.length === 0) return;
    this.#flight = this.#send();
    await this.#flight;
  }

  /** Returns the first waiting lines that fit into one statement, but at least one line, and their size in characters. */
  #first(): { batch: LogLine[]; size: number } {
    const batch: LogLine[] = [];
    let size = 0;
    for (const next of this.#lines) {
      if (batch.length > 0 && (size + next.size > sentMax || batch.length === linesPerFlush)) break;
      batch.push(next.line);
      size += next.size;
    }
    return { batch, size };
  }

  async #send(): Promise<void> {
    try {
      while (this.#lines.length > 0) {
        const { batch, size } = this.#first();
        const sent = batch.length;
        const last = batch.at(-1);
        if (this.#dropped > 0 && last) {
          batch.push({
            ...last,
            level: "warn",
            message: `${this.#dropped} log lines were dropped: too many at once`,
            fields: null,
          });
          this.#dropped = 0;
        }
        await this.#write(batch);
        // Removes only the lines that were sent; lines added during the write stay in the buffer.
        this.#lines = this.#lines.slice(sent);
        this.#waiting -= size;
      }
    } catch (error) {
      this.#log.debug({ error: messageOf(error), lines: this.#lines.length }, "run logs wait for the store");
      this.#cancel ??= this.#clock.after(flushEveryMs * 5, () => void this.flush());
    } finally {
      this.#flight = undefined;
    }
  }
}
