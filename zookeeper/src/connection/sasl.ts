/**
 * SASL DIGEST-MD5 as ZooKeeper's servers require it (RFC 2831, `qop=auth`), which prescribes MD5. It proves knowledge of the password but
 * does not encrypt the connection: use TLS on a shared network.
 */
import { createHash, randomBytes } from "node:crypto";
import { ZooKeeperError } from "../base/errors.ts";
import type { Question } from "../requests/call.ts";
import { op } from "../wire/codes.ts";

export interface SaslOptions {
  readonly username: string;
  readonly password: string;
}

/** A request of one step of the exchange: it sends the client's token; its answer is the server's next token. */
export function saslStep(token: Uint8Array): Question<Buffer> {
  return {
    op: op.sasl,
    what: "sasl",
    path: "",
    repeatable: false,
    write: (writer) => writer.buffer(token),
    read: (reader) => reader.buffer(),
  };
}

const md5 = (data: string | Buffer) => createHash("md5").update(data).digest();
const hex = (data: Buffer) => data.toString("hex");

/** Encodes a text for hashing as RFC 2831 and Java do: ISO 8859-1 if that has all characters of the text, otherwise UTF-8. */
const encoded = (text: string) => Buffer.from(text, /^[\0-\xff]*$/.test(text) ? "latin1" : "utf8");

/** Parses a challenge: `a="b",c=d` → { a: "b", c: "d" } */
export function parseChallenge(text: string): Record<string, string> {
  const parts: Record<string, string> = {};
  for (const [, name = "", quoted, plain] of text.matchAll(/([\w-]+)=(?:"((?:\\.|[^"\\])*)"|([^,]*))/g)) {
    parts[name] = quoted === undefined ? (plain ?? "") : quoted.replace(/\\(.)/g, "$1");
  }
  return parts;
}

/**
 * @param challenge the server's first token
 * @param cnonce a random string, different in each exchange
 * @returns the client's answer, and the proof that the server must send in turn
 * @throws AUTH_FAILED if the server does not offer DIGEST-MD5 as required
 */
export function answerChallenge(
  { username, password }: SaslOptions,
  challenge: Buffer,
  cnonce: string = randomBytes(18).toString("base64"),
): { answer: Buffer; proof: string } {
  if (challenge.length === 0) {
    throw new ZooKeeperError("AUTH_FAILED", "the server is not set up for SASL", {
      hint: "give the servers a JAAS configuration with a section Server, or leave the option `sasl` out",
    });
  }
  const { nonce, realm = "", algorithm, qop = "auth" } = parseChallenge(challenge.toString("utf8"));
  if (nonce === undefined || algorithm !== "md5-sess" || !qop.split(",").includes("auth")) {
    throw new ZooKeeperError("AUTH_FAILED", "the server's SASL challenge is not DIGEST-MD5 with qop=auth", {
      hint: "only DIGEST-MD5 is supported; Kerberos is not",
    });
  }
  const uri = "zookeeper/zk-sasl-md5";
  const colon = Buffer.from(":");
  const who = Buffer.concat([encoded(username), colon, encoded(realm), colon, encoded(password)]);
  const a1 = Buffer.concat([md5(who), Buffer.from(`:${nonce}:${cnonce}`)]);
  const sign = (method: string) =>
    hex(md5(`${hex(md5(a1))}:${nonce}:00000001:${cnonce}:auth:${hex(md5(`${method}:${uri}`))}`));
  const quote = (text: string) => `"${text.replace(/["\\]/g, "\\$&")}"`;
  const answer = [
    "charset=utf-8",
    `username=${quote(username)}`,
    `realm=${quote(realm)}`,
    `nonce=${quote(nonce)}`,
    "nc=00000001",
    `cnonce=${quote(cnonce)}`,
    `digest-uri=${quote(uri)}`,
    "maxbuf=65536",
    `response=${sign("AUTHENTICATE")}`,
    "qop=auth",
  ].join(",");
  return { answer: Buffer.from(answer), proof: sign("") };
}
