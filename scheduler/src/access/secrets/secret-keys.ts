/** Envelope encryption: each value is encrypted with its own data key, and the data key with a key that is never stored in the database. */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import { CarillonError } from "../../base/errors.ts";

const keyBytes = 32;
const ivBytes = 12;
const tagBytes = 16;

/** A secret's value as stored: the encrypted data key (`wrapped`) and the encrypted value (`sealed`). */
export interface Sealed {
  /** The id of the key that encrypted the data key. */
  keyId: string;
  wrapped: Buffer;
  sealed: Buffer;
}

/** The name and version to which the encryption binds a value, so that one row's value cannot replace another's. */
export interface SecretPlace {
  name: string;
  version: number;
}

interface Key {
  id: string;
  bytes: Buffer;
}

export const makeSecretKey = (): string => randomBytes(keyBytes).toString("base64");

/**
 * This process's keys. The first key encrypts new data keys; every key can decrypt. A key's id is its hash, because two keys could be given
 * the same name.
 */
export class SecretKeys {
  #keys: readonly Key[];

  /** @throws OPTION_INVALID if a text is not a key; the error does not contain the text */
  constructor(texts: readonly string[]) {
    this.#keys = texts.map((text, at) => {
      const bytes = Buffer.from(text, "base64");
      if (bytes.length !== keyBytes || !/^[A-Za-z0-9+/_-]{43}=?$/.test(text))
        throw new CarillonError("OPTION_INVALID", `secretKeys: number ${at + 1} is not 32 bytes in base64`, {
          hint: "Make one with `carillon secrets key`.",
        });
      return {
        id: createHash("sha256").update("carillon secret key\n").update(bytes).digest("hex").slice(0, 16),
        bytes,
      };
    });
  }

  /** The id of the key that encrypts new data keys. @throws SECRET_KEY_MISSING if there is no key */
  get present(): string {
    return this.#first().id;
  }

  get some(): boolean {
    return this.#keys.length > 0;
  }

  get count(): number {
    return this.#keys.length;
  }

  /** True if both have the same keys in the same order. */
  equals(other: SecretKeys): boolean {
    return this.#keys.map(({ id }) => id).join() === other.#keys.map(({ id }) => id).join();
  }

  /** Replaces the keys for all code that holds this object. */
  exchange(others: SecretKeys): void {
    this.#keys = others.#keys;
  }

  /** Encrypts a value. @throws SECRET_KEY_MISSING if there is no key */
  seal(value: string, place: SecretPlace): Sealed {
    const key = this.#first();
    const dataKey = randomBytes(keyBytes);
    const sealed = encrypt(dataKey, Buffer.from(value), bound("value", place));
    return { keyId: key.id, wrapped: encrypt(key.bytes, dataKey, bound(key.id, place)), sealed };
  }

  /** Decrypts a value. @throws SECRET_KEY_MISSING if this process lacks its key, SECRET_INVALID if the value was tampered with */
  open({ keyId, wrapped, sealed }: Sealed, place: SecretPlace): string {
    return decrypt(this.#dataKey(keyId, wrapped, place), sealed, bound("value", place), place).toString();
  }

  /** Encrypts the data key again with the first key; the value itself is not decrypted. @throws as `open` */
  rewrap({ keyId, wrapped }: Omit<Sealed, "sealed">, place: SecretPlace): Omit<Sealed, "sealed"> {
    const key = this.#first();
    const dataKey = this.#dataKey(keyId, wrapped, place);
    return { keyId: key.id, wrapped: encrypt(key.bytes, dataKey, bound(key.id, place)) };
  }

  #dataKey(keyId: string, wrapped: Buffer, place: SecretPlace): Buffer {
    const key = this.#keys.find(({ id }) => id === keyId);
    if (!key) throw missing(`secret ${place.name} is wrapped by the key ${keyId}, which this process does not have`);
    return decrypt(key.bytes, wrapped, bound(keyId, place), place);
  }

  #first(): Key {
    const [key] = this.#keys;
    if (!key) throw missing("this process has no key for secrets");
    return key;
  }
}

const bound = (use: string, { name, version }: SecretPlace): Buffer =>
  Buffer.from(`carillon secret\n${use}\n${version}\n${name}`);

function encrypt(key: Buffer, plain: Buffer, more: Buffer): Buffer {
  const iv = randomBytes(ivBytes);
  const cipher = createCipheriv("aes-256-gcm", key, iv, { authTagLength: tagBytes }).setAAD(more);
  return Buffer.concat([iv, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

function decrypt(key: Buffer, text: Buffer, more: Buffer, { name, version }: SecretPlace): Buffer {
  try {
    const [iv, body, tag] = [text.subarray(0, ivBytes), text.subarray(ivBytes, -tagBytes), text.subarray(-tagBytes)];
    const decipher = createDecipheriv("aes-256-gcm", key, iv, { authTagLength: tagBytes }).setAAD(more).setAuthTag(tag);
    return Buffer.concat([decipher.update(body), decipher.final()]);
  } catch (cause) {
    throw new CarillonError("SECRET_INVALID", `version ${version} of secret ${name} does not open: it was changed`, {
      cause,
      hint: "Set the secret anew; and find out who writes to the database.",
    });
  }
}

const missing = (what: string) =>
  new CarillonError("SECRET_KEY_MISSING", what, {
    hint: "Give it by the option secretKeys, or CARILLON_SECRET_KEYS: see docs/access/secrets.md.",
  });
