import type { Clock } from "../../base/clock.ts";
import { type ErrorCode, errorCodes } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";

const linesMost = 60;
const windowMs = 60_000;

/** The caller and route of a request. It never contains credentials, because a wrong password may be correct elsewhere. */
export interface Asked {
  address: string;
  /** The name of the user or key; absent if the caller is unknown. */
  user?: string;
  /** The route in the form "POST /v1/tasks/:task/runs". */
  route?: string;
  /** The id of the request, which the answer contains as `x-request-id`. */
  request?: string;
}

/**
 * Logs each sign-in, and each refusal of a password, token, key or access, so that attacks are visible. Refusals above `linesMost` a minute
 * are only counted, and the counts are logged in one line.
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

  /** @param by how the user signed in */
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
