import type { Clock } from "../clock.ts";
import { messageOf } from "../errors.ts";
import type { Log } from "../log.ts";
import type { LogLine } from "../store.ts";

const flushEveryMs = 200;
const linesPerFlush = 1_000;
const linesMax = 10_000;
const messageLength = 8_192;

/** Lines that handlers write, sent in batches; bounded, and what did not fit is told of in the log itself. */
export class LogBuffer {
  readonly #write: (lines: LogLine[]) => Promise<void>;
  readonly #clock: Clock;
  readonly #log: Log;
  #lines: LogLine[] = [];
  #dropped = 0;
  #flight: Promise<void> | undefined;
  #cancel: (() => void) | undefined;

  constructor(write: (lines: LogLine[]) => Promise<void>, clock: Clock, log: Log) {
    this.#write = write;
    this.#clock = clock;
    this.#log = log;
  }

  add(line: LogLine): void {
    if (this.#lines.length >= linesMax) {
      this.#dropped++;
      return;
    }
    const message =
      line.message.length > messageLength ? `${line.message.slice(0, messageLength)} … (cut)` : line.message;
    this.#lines.push({ ...line, message });
    this.#cancel ??= this.#clock.after(flushEveryMs, () => void this.flush());
  }

  /** Sends everything that was added before. */
  async flush(): Promise<void> {
    this.#cancel?.();
    this.#cancel = undefined;
    while (this.#flight) await this.#flight;
    if (this.#lines.length === 0) return;
    this.#flight = this.#send();
    await this.#flight;
  }

  async #send(): Promise<void> {
    try {
      while (this.#lines.length > 0) {
        const batch = this.#lines.slice(0, linesPerFlush);
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
        // What was added while they were on their way stays.
        this.#lines = this.#lines.slice(sent);
      }
    } catch (error) {
      this.#log.debug({ error: messageOf(error), lines: this.#lines.length }, "run logs wait for the store");
      this.#cancel ??= this.#clock.after(flushEveryMs * 5, () => void this.flush());
    } finally {
      this.#flight = undefined;
    }
  }
}
