import type { Change } from "../../base/change.ts";
import { CarillonError } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";
import type { AskingRun } from "../../run/flow.ts";
import { checkSecretName } from "../../task/names.ts";
import { Redactor } from "./redactor.ts";
import type { SecretKeys } from "./secret-keys.ts";
import type { SecretRecord, SecretStore } from "./secret-store.ts";

/** Reads secrets for a run's handler: directly from the store, or through a server. */
export interface SecretSource {
  /** @throws SECRET_UNKNOWN, SECRET_FORBIDDEN, SECRET_KEY_MISSING, SECRET_INVALID if the value was tampered with, FENCE_STALE */
  open(asking: AskingRun, name: string, version: number | null): Promise<string>;
}

/** Reads secrets for the runs of a worker, and remembers each value, so that the runs' output is redacted. */
export class HandedSecrets {
  readonly redactor: Redactor;
  readonly #source: SecretSource;

  constructor(source: SecretSource, redactor = new Redactor()) {
    this.#source = source;
    this.redactor = redactor;
  }

  async open(asking: AskingRun, name: string, version?: number): Promise<string> {
    const value = await this.#source.open(asking, name, version ?? null);
    this.redactor.add(name, value);
    return value;
  }

  /** @throws SECRET_EXPOSED if the text contains a secret's value, because payloads for other runs are stored unredacted */
  refuseExposed(text: string | null, what: string): void {
    if (!this.redactor.exposes(text)) return;
    throw new CarillonError("SECRET_EXPOSED", `${what} has a secret's value in it`, {
      hint: "Hand on the secret's name, and ask for its value there.",
    });
  }
}

/** Checks a secret's name and value. @throws SECRET_INVALID */
export function checkSecret(name: string, value: string): void {
  checkSecretName(name);
  const wrong = (what: string, hint: string) => new CarillonError("SECRET_INVALID", what, { hint });
  if (value.includes("\0")) throw wrong("a secret's value has a NUL in it", "Encode it, for example as base64.");
  if (value.trim().length < limits.secretLeastLength)
    throw wrong(
      `a secret's value is shorter than ${limits.secretLeastLength} characters`,
      "One so short cannot be told from other text, so it would not be taken out of logs; and it can be guessed.",
    );
  if (Buffer.byteLength(value) > limits.secretBytes)
    throw wrong(`a secret's value is larger than ${limits.secretBytes} bytes`, "Keep the data elsewhere.");
}

/** Reads and writes secrets in a process that has access to the store and has the keys. */
export class Secrets implements SecretSource {
  readonly #store: SecretStore;
  readonly #keys: SecretKeys;

  constructor(store: SecretStore, keys: SecretKeys) {
    this.#store = store;
    this.#keys = keys;
  }

  /** Stores a new version of a secret. @param tasks undefined: unchanged @throws SECRET_INVALID, SECRET_KEY_MISSING */
  async set(name: string, value: string, tasks: string[] | null | undefined, change: Change): Promise<SecretRecord> {
    checkSecret(name, value);
    return this.#store.set(name, (version) => this.#keys.seal(value, { name, version }), tasks, change);
  }

  /**
   * Encrypts data keys of up to `limit` versions and `limit` second factors again with the first key.
   * @throws SECRET_KEY_MISSING, SECRET_INVALID if a data key was tampered with
   */
  rewrap(change: Change, limit: number): Promise<{ rewrapped: number; left: number }> {
    const { present } = this.#keys;
    return this.#store.rewrap(present, (old, place) => this.#keys.rewrap(old, place), limit, change);
  }

  async open(asking: AskingRun, name: string, version: number | null): Promise<string> {
    const { name: _, version: found, ...sealed } = await this.#store.sealedFor(asking, name, version);
    return this.#keys.open(sealed, { name, version: found });
  }
}
