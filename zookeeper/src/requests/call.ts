/**
 * One pending request with its encoder, the decoder of its answer, and its callbacks. It settles once: with the answer, when the session
 * ends, or when the caller's signal aborts. The loss of the connection settles it too, unless the request is repeatable.
 */
import { serverError, ZooKeeperError } from "../base/errors.ts";
import { heardByMany } from "../base/signals.ts";
import type { Reader, Writer } from "../wire/bytes.ts";

export interface Question<T> {
  /** The operation's code; see wire/codes.ts. */
  readonly op: number;
  /** The operation as text for messages, such as `create /a`. */
  readonly what: string;
  readonly path: string;
  /** True for reads: if the connection is lost, the request is sent again on the next connection. */
  readonly repeatable: boolean;
  /** The size of the data in bytes, which counts towards the limit on calls that wait for a connection; undefined: negligible. */
  readonly dataBytes?: number;
  /** True if the read may be combined with neighbouring reads into one request. */
  together?: boolean;
  write(writer: Writer): void;
  /** Decodes the body of a successful answer. */
  read(reader: Reader): T;
  /** Converts an error code that is a normal result (NO_NODE for `exists`) to its value; undefined for a real error. */
  readError?(code: number): { value: T } | undefined;
  /** Returns a more specific error than the code alone does; undefined if there is none. */
  explain?(code: number): ZooKeeperError | undefined;
}

export class Call {
  readonly question: Question<unknown>;
  /**
   * Size in bytes. While the call waits for a connection: of its data, which counts towards the limit of waiting bytes. Later: of the whole
   * request.
   */
  bytes = 0;
  /** The call's index in the list of waiting calls. */
  place = 0;
  xid = 0;
  /** Monotonic ms at which the call was passed to the connection, or added to the list of waiting calls. */
  sentAt = 0;
  settled = false;
  /** Called once the call has settled. */
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

  /**
   * Settles the call.
   * @throws RangeError if the body does not match the request; for a multi, also the error that the body contains. The caller then settles
   * the call.
   */
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
