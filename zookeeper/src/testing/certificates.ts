import { createPublicKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";

/**
 * A certificate and its key in PEM. ZooKeeper and Java use a file with `key` followed by `cert` as a key store, and a file with only
 * `cert` as a trust store.
 */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

export interface Authority extends Certificate {
  /** Issues a certificate. @param name the subject; the default host names and addresses are those of loopback */
  issue(name: string, validity?: Validity): Certificate;
}

export interface Validity {
  readonly from?: Date;
  readonly until?: Date;
  /** The certificate's host names; default localhost and 127.0.0.1. */
  readonly hosts?: readonly string[];
}

/** Creates a temporary certificate authority. X.509 is encoded here, because Node cannot create certificates and openssl may be missing. */
export function createAuthority(name = "Carillon test authority", validity: Pick<Validity, "until"> = {}): Authority {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const isAuthority = extension("2.5.29.19", sequence(boolean(true)), true);
  const named = { subject: name, issuer: name };
  const cert = certify({ ...validity, ...named, key: privateKey, signer: privateKey, extensions: [isAuthority] });
  return {
    cert,
    key: pemOf(privateKey),
    issue(subject, validity = {}) {
      const own = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
      const extensions = [extension("2.5.29.17", sequence(...(validity.hosts ?? loopback).map(alternativeName)))];
      const cert = certify({ ...validity, subject, issuer: name, key: own, signer: privateKey, extensions });
      return { cert, key: pemOf(own) };
    },
  };
}

const loopback = ["localhost", "127.0.0.1"];

interface Order extends Validity {
  readonly subject: string;
  readonly issuer: string;
  readonly key: KeyObject;
  readonly signer: KeyObject;
  readonly extensions: readonly Buffer[];
}

function certify(order: Order): string {
  const algorithm = sequence(objectId("1.2.840.10045.4.3.2")); // ECDSA with SHA-256
  const from = order.from ?? new Date("2020-01-01T00:00:00Z");
  const until = order.until ?? new Date("2049-01-01T00:00:00Z");
  const body = sequence(
    tagged(0xa0, integer(Buffer.from([2]))), // version 3
    integer(Buffer.concat([Buffer.from([1]), randomBytes(7)])), // the first byte is never zero, because DER forbids leading zeros
    algorithm,
    commonName(order.issuer),
    sequence(utcTime(from), utcTime(until)),
    commonName(order.subject),
    createPublicKey(order.key).export({ type: "spki", format: "der" }),
    tagged(0xa3, sequence(...order.extensions)),
  );
  const whole = sequence(body, algorithm, bitString(sign("sha256", body, order.signer)));
  const lines = whole.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}

function pemOf(key: KeyObject): string {
  return key.export({ type: "pkcs8", format: "pem" }).toString();
}

/** Encodes a DER value: a tag, the length of the content, the content. */
function tagged(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return tagged(0x30, ...parts);
}

/** Encodes an unsigned integer in DER. A zero byte is added in front if the highest bit would be read as a sign. */
function integer(bytes: Buffer): Buffer {
  return tagged(0x02, (bytes[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.from([0]), bytes]) : bytes);
}

function boolean(value: boolean): Buffer {
  return tagged(0x01, Buffer.from([value ? 0xff : 0]));
}

function bitString(bytes: Buffer): Buffer {
  return tagged(0x03, Buffer.from([0]), bytes);
}

function utcTime(at: Date): Buffer {
  return tagged(0x17, Buffer.from(`${at.toISOString().replace(/[-:T]/g, "").slice(2, 14)}Z`));
}

function commonName(name: string): Buffer {
  return sequence(tagged(0x31, sequence(objectId("2.5.4.3"), tagged(0x0c, Buffer.from(name)))));
}

function extension(id: string, value: Buffer, critical = false): Buffer {
  return sequence(objectId(id), ...(critical ? [boolean(true)] : []), tagged(0x04, value));
}

function alternativeName(host: string): Buffer {
  return /^[\d.]+$/.test(host)
    ? tagged(0x87, Buffer.from(host.split(".").map(Number)))
    : tagged(0x82, Buffer.from(host));
}

function objectId(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split(".").map(Number);
  const bytes = [first * 40 + second];
  for (const part of rest) {
    const digits = [part & 0x7f];
    for (let left = part >> 7; left > 0; left >>= 7) digits.unshift((left & 0x7f) | 0x80);
    bytes.push(...digits);
  }
  return tagged(0x06, Buffer.from(bytes));
}
