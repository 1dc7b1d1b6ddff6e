import { CarillonError } from "../../base/errors.ts";
import { sortedJson } from "../../base/json.ts";
import { limits } from "../../base/limits.ts";

export interface Confirmation {
  token: string;
  expiresMs: number;
}

interface Kept {
  act: string;
  /** The state that was shown to the caller, as sorted JSON. */
  state: string;
  expiresMs: number;
}

/**
 * Confirmations of calls, each bound to one tool, its exact arguments, and the state that the preview showed. Every attempt to use a
 * confirmation removes it, even one that is refused. They are held only in memory, so they end with the process.
 */
export class Confirmations {
  readonly #kept = new Map<string, Kept>();
  readonly #nowMs: () => number;
  readonly #newToken: () => string;

  /** @param newToken returns a random text that cannot be guessed */
  constructor(nowMs: () => number, newToken: () => string) {
    this.#nowMs = nowMs;
    this.#newToken = newToken;
  }

  issue(tool: string, given: object, state: unknown): Confirmation {
    const expiresMs = this.#nowMs() + limits.confirmationMs;
    const token = this.#newToken();
    this.#kept.set(token, { act: actOf(tool, given), state: sortedJson(state), expiresMs });
    // A Map iterates in the order of insertion, so its first entry is the oldest.
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > limits.confirmations && oldest !== undefined) this.#kept.delete(oldest);
    return { token, expiresMs };
  }

  /**
   * Uses a confirmation. @returns a function that throws CONFIRMATION_REFUSED if its argument is not the state that was shown
   * @throws CONFIRMATION_REFUSED if the confirmation is unknown, expired, or bound to another call
   */
  use(token: string, tool: string, given: object): (state: unknown) => void {
    const kept = this.#kept.get(token);
    this.#kept.delete(token);
    if (!kept) throw refused("the confirmation is unknown, or was used already");
    if (kept.expiresMs <= this.#nowMs()) throw refused("the confirmation is too old");
    if (kept.act !== actOf(tool, given))
      throw refused("the confirmation was given for another tool or other arguments");
    return (state) => {
      if (kept.state !== sortedJson(state)) throw refused("the state is no longer the one that was shown");
    };
  }
}

const actOf = (tool: string, given: object): string => `${tool} ${sortedJson(given)}`;

const refused = (why: string): CarillonError =>
  new CarillonError("CONFIRMATION_REFUSED", `${why}; nothing was changed`, {
    path: "confirm",
    hint: "Call the tool again without confirm: it returns what it would do now, and a new confirmation.",
  });
