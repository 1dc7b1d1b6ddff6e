import { randomUUID } from "node:crypto";
import { CarillonError, messageOf } from "../../base/errors.ts";
import { type Json, jsonText } from "../../base/json.ts";
import type { PayloadSettings } from "../../settings/payload-store.ts";
import { storedField, storedKey } from "../../task/kinds/encoded.ts";

/** Moves large values to the payload store. The database then holds a reference in place of the value. */
export class Outside {
  readonly #payloads: PayloadSettings | null;

  constructor(payloads: PayloadSettings | null) {
    this.#payloads = payloads;
  }

  get isNone(): boolean {
    return this.#payloads === null;
  }

  /**
   * Moves a JSON text to the payload store if it is larger than the configured limit (`overBytes`).
   * @returns the text itself, or the JSON text of a reference
   * @throws PAYLOAD_STORE_FAILED
   */
  async put(text: string, what: string, nowMs: number): Promise<string> {
    if (!this.#payloads || Buffer.byteLength(text) <= this.#payloads.overBytes) return text;
    const key = `${new Date(nowMs).toISOString().slice(0, 10)}/${randomUUID()}`;
    try {
      await this.#payloads.store.put(key, text);
    } catch (cause) {
      throw failed(`${what} could not be kept outside the store: ${messageOf(cause)}`, cause);
    }
    return jsonText({ [storedField]: key }, what) as string;
  }

  /** Returns the value that a reference stands for; any other value is returned unchanged. @throws PAYLOAD_STORE_FAILED */
  async get(value: Json, what: string): Promise<Json> {
    const key = storedKey(value);
    if (key === undefined) return value;
    if (!this.#payloads) throw failed(`${what} is kept outside the store, and this process has no payload store`);
    let text: string | null;
    try {
      text = await this.#payloads.store.get(key);
    } catch (cause) {
      throw failed(`${what} could not be read from outside the store: ${messageOf(cause)}`, cause);
    }
    if (text === null) throw failed(`${what} is not outside the store any more: there is no ${key}`);
    try {
      return JSON.parse(text) as Json;
    } catch {
      // The parser's own error is dropped, because its message would quote the payload.
      throw failed(`${what} is no JSON outside the store: ${key}`);
    }
  }
}

const failed = (what: string, cause?: unknown) =>
  new CarillonError("PAYLOAD_STORE_FAILED", what, {
    hint: "Give each process that enqueues or runs the task the same payload store; keep its objects as long as runs and their history.",
    cause,
  });
