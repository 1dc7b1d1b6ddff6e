import { readSecretKeys } from "./read-keys.ts";
import { Redactor } from "./redactor.ts";
import type { SecretKeys } from "./secret-keys.ts";
import type { SecretStore } from "./secret-store.ts";
import { HandedSecrets, Secrets } from "./secrets.ts";

/** A process's keys for secrets, and the redactor that contains the secret values which the process has read. */
export class OwnSecrets {
  readonly redactor = new Redactor();
  readonly keys: SecretKeys;

  /** @param given as for `readSecretKeys` @throws OPTION_INVALID, FILE_INVALID, SECRET_KEY_OPEN */
  constructor(given: string | string[] | undefined) {
    this.keys = readSecretKeys(given);
  }

  of(store: SecretStore) {
    const secretSource = new Secrets(store, this.keys);
    return { secretKeys: this.keys, secretSource, secrets: new HandedSecrets(secretSource, this.redactor) };
  }
}
