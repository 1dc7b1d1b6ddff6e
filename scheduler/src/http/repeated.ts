import { createHash, randomUUID } from "node:crypto";
import { type Principal, principalText } from "../access/access.ts";
import { statusOf } from "../api/problem-status.ts";
import { CarillonError, messageOf } from "../base/errors.ts";
import { sortedJson } from "../base/json.ts";
import type { Log } from "../base/log.ts";
import type { AnswerStore } from "../store/answer-store.ts";

export interface Answered {
  status: number;
  answer: unknown;
  version: number | null;
}

/**
 * After this time in ms, a request that has not been answered counts as abandoned, so that its key can be used again. Requests take less
 * time, unless the process is blocked.
 */
const busyMs = 60_000;

export interface Asked {
  who: Principal;
  key: string;
  /** The request's content. Another request with the same key is recognised by different content. */
  request: { route: string; given: unknown; ifVersion: number | null };
  /** How many run ids are reserved for the request. */
  runs: number;
  /** True if the answer contains a secret. */
  secret: boolean;
  nowMs: number;
}

/**
 * Executes a request once per idempotency key; a repetition gets the first answer. States of a key: *none* → *begun* when a
 * request begins → *answered* when it has succeeded → *none* after a day. A repetition of an *answered* request gets its answer,
 * unless that contained a secret. A repetition of a *begun* request is refused as busy, until `busyMs` have passed; then it is
 * executed again, with the same run ids. If the request is refused (a status below 500), the state is *none* again; after any
 * other failure, a repetition is executed at once. While a key is *begun* or *answered*, another request with it is refused.
 */
export class Repeated {
  readonly #store: AnswerStore;
  readonly #log: Log;

  constructor(store: AnswerStore, log: Log) {
    this.#store = store;
    this.#log = log;
  }

  /** @throws IDEMPOTENCY_MISMATCH, IDEMPOTENCY_BUSY, ANSWER_NOT_KEPT, and the errors of `act` */
  async once(
    { who, key, request, runs, secret, nowMs }: Asked,
    act: (drawn: { runIds: number[]; token: string }) => Promise<Answered>,
  ): Promise<Answered & { again: boolean }> {
    const owner = principalText(who);
    const hash = createHash("sha256").update(sortedJson(request)).digest();
    const begun = await this.#store.begin({ who: owner, key, request: hash, runs }, nowMs, busyMs);
    if (begun.kind === "mismatch") {
      throw new CarillonError("IDEMPOTENCY_MISMATCH", "this idempotency key was used for another request", {
        hint: "Draw a new key for a new request.",
      });
    }
    if (begun.kind === "busy") {
      throw new CarillonError("IDEMPOTENCY_BUSY", "the first request with this idempotency key is still under way", {
        hint: "Ask again in a moment.",
        retryAfterMs: 1_000,
      });
    }
    if (begun.kind === "answered") {
      if (secret) {
        throw new CarillonError("ANSWER_NOT_KEPT", "it was done, and its answer had a secret that is kept nowhere", {
          hint: "Revoke what was made and make another.",
        });
      }
      return { status: begun.status, answer: begun.answer ?? undefined, version: begun.version, again: true };
    }
    const { runIds } = begun;
    try {
      // Derived from the key, so that names generated from it are the same if the request is executed again.
      const token = `${owner} ${key}`;
      const answered = await act({ runIds, token });
      const kept = secret ? { ...answered, answer: undefined } : answered;
      await this.#store.finish(owner, key, begun.token, kept);
      return { ...answered, again: false };
    } catch (error) {
      await this.#end(owner, key, begun.token, nowMs, error);
      throw error;
    }
  }

  async #end(owner: string, key: string, token: string, nowMs: number, error: unknown): Promise<void> {
    const nothingDone = error instanceof CarillonError && statusOf(error.code) < 500;
    try {
      await (nothingDone
        ? this.#store.forget(owner, key, token)
        : this.#store.leave(owner, key, token, nowMs - busyMs));
    } catch (failure) {
      // The key remains *begun*, so a repetition is executed only after `busyMs`.
      this.#log.debug({ error: messageOf(failure) }, "an idempotency key could not be given back");
    }
  }
}

/** The token of a request without an idempotency key; unique. */
export const tokenOfItsOwn = (): string => randomUUID();
