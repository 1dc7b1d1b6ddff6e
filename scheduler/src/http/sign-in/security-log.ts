import type { Clock } from "../../base/clock.ts";
import { type ErrorCode, errorCodes } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";

const linesMost = 60;
const windowMs = 60_000;

/** Whom a request is of, and what it asked. Never what was shown: a wrong password may be the right one of somewhere else. */
export interface Asked {
  address: string;
  /** Absent: nobody that is known here. */
  user?: string;
  /** "POST /v1/tasks/:task/runs". */
  route?: string;
  /** Its id, which its answer has as `x-request-id`. */
  request?: string;
}

/**
 * Makes true: each sign-in is in the log, and each refusal of a password, a token, a key or a right is, or is counted there. A flood of
 * refusals costs `linesMost` lines a minute and one with the numbers of the others.
 */
export class SecurityLog {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #untold = new Map<ErrorCode, number>();
  #lines = 0;
  #endWindow: (() => void) | undefined;

  constructor(clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
  }

  /** @param by what was shown */
  signedIn(by: "password" | "provider", asked: Asked): void {
    this.#log.info({ by, ...asked }, "signed in");
  }

  refused(code: ErrorCode, asked: Asked): void {
    this.#endWindow ??= this.#clock.after(windowMs, () => this.#tellRest());
    if (this.#lines < linesMost) {
      this.#lines++;
      this.#log.warn({ code, ...asked }, `refused: ${errorCodes[code]}`);
    } else this.#untold.set(code, (this.#untold.get(code) ?? 0) + 1);
  }

  close(): void {
    this.#endWindow?.();
    this.#tellRest();
  }

  #tellRest(): void {
    const more = Object.fromEntries(this.#untold);
    if (this.#untold.size > 0) this.#log.warn({ more }, "more requests were refused than are told one by one");
    this.#untold.clear();
    this.#lines = 0;
    this.#endWindow = undefined;
  }
}
