/**
 * One request on its way: how it is written, how its answer is read, and its callbacks. It settles once, by the first of these:
 * the answer, the loss of the connection, the session's end, the caller's signal.
 */
import { serverError, ZooKeeperError } from "../base/errors.ts";
import { heardByMany } from "../base/signals.ts";
import type { Reader, Writer } from "../wire/bytes.ts";

export interface Question<T> {
  /** The operation's code, from wire/codes. */
  readonly op: number;
  /** For messages, as in `create /a`. */
  readonly what: string;
  readonly path: string;
  /** True for reads only: repeated on the next connection when this one is lost. */
  readonly repeatable: boolean;
  /** The size of its data, for the limit on calls that wait without a connection; default: negligible. */
  readonly dataBytes?: number;
  /** May share a request with the reads around it. */
  together?: boolean;
  write(writer: Writer): void;
  /** Reads the body of a good answer. */
  read(reader: Reader): T;
  /** An error that is an answer: undefined when it is none. */
  readError?(code: number): { value: T } | undefined;
  /** Returns a more specific error than the code alone; undefined if it has none. */
  explain?(code: number): ZooKeeperError | undefined;
}

export class Call {
  readonly question: Question<unknown>;
  /** Bytes while it waits to be sent, for the bound on them. */
  bytes = 0;
  /** Where it waits to be sent. */
  place = 0;
  xid = 0;
  /** Monotonic ms when it was handed to the connection. */
  sentAt = 0;
  settled = false;
  /** Called once it has settled. */
  onSettled: ((call: Call) => void) | undefined;
  readonly #resolve: (value: unknown) => void;
  readonly #reject: (reason: unknown) => void;
  readonly #signal: AbortSignal | undefined;
  readonly #aborted: (() => void) | undefined;

  constructor(
    question: Question<unknown>,
    resolve: (value: never) => void,
    reject: (reason: unknown) => void,
    signal: AbortSignal | undefined,
  ) {
    this.question = question;
    this.#resolve = resolve as (value: unknown) => void;
    this.#reject = reject;
    this.#signal = signal;
    if (signal) {
      this.#aborted = () => this.fail(aborted(question.what, question.path, signal));
      heardByMany(signal).addEventListener("abort", this.#aborted, { once: true });
    }
  }

  /** @throws RangeError if the body does not match the request; for a multi, the error that the body holds */
  answer(code: number, reader: Reader): void {
    if (this.settled) return;
    const value = code === 0 ? { value: this.question.read(reader) } : this.question.readError?.(code);
    if (value) this.#done(value.value);
    else {
      const { what, path } = this.question;
      this.fail(this.question.explain?.(code) ?? serverError(code, what, path));
    }
  }

  fail(reason: unknown): void {
    if (this.settled) return;
    this.#settle();
    this.#reject(reason);
  }

  #done(value: unknown): void {
    if (this.settled) return;
    this.#settle();
    this.#resolve(value);
  }

  #settle(): void {
    this.settled = true;
    if (this.#aborted) this.#signal?.removeEventListener("abort", this.#aborted);
    this.onSettled?.(this);
  }
}

export function aborted(what: string, path: string, signal: AbortSignal): ZooKeeperError {
  return new ZooKeeperError("ABORTED", `${what}: given up by the caller`, { path, cause: signal.reason });
}
