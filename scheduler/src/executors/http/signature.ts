import { createHash, createHmac } from "node:crypto";
import { CarillonError } from "../../base/errors.ts";
import { shownValue } from "../../base/json.ts";
import { checkNamespace, namespaceOf } from "../../base/namespace.ts";
import type { HttpTaskOptions } from "../../settings/settings.ts";

/**
 * The run in a request's headers. `slot` is empty for a run without a slot, and `schedule` for a run that belongs to no named schedule.
 */
export interface RunMarks {
  task: string;
  schedule: string;
  run: string;
  slot: string;
  attempt: string;
  fence: string;
}

/** The parts of a request that are signed, without the headers. */
export interface Message {
  method: string;
  url: URL;
  body: Buffer | null;
}

export interface SigningKey {
  secret: string;
  /** The id by which a receiver selects the secret for verification. */
  keyId: string;
}

export interface SigningKeys {
  /** Signs method, URL, body and the run's headers by RFC 9421; null: no such signature is sent. */
  key: SigningKey | null;
  /** Signs in the legacy format, for receivers that cannot verify RFC 9421; null: no such signature is sent. */
  legacySecret: string | null;
}

/**
 * Returns the headers that identify the run, and signatures, if there are secrets, by which receivers verify the sender. The
 * signature by RFC 9421 covers method, URL, body and these headers: if it covered only the body, a captured request could be
 * replayed to another URL, or with another fence.
 * @param seconds the current time in seconds since 1970
 */
export function runHeaders(message: Message, marks: RunMarks, { key, legacySecret }: SigningKeys, seconds: number) {
  const { task, schedule, run, slot, attempt, fence } = marks;
  const timestamp = String(seconds);
  const told = {
    // Encoded, because a task's name may contain characters that are not allowed in a header.
    "carillon-task": encodeURIComponent(task),
    ...(schedule === "" ? {} : { "carillon-schedule": encodeURIComponent(schedule) }),
    "carillon-run": run,
    ...(slot === "" ? {} : { "carillon-slot": slot }),
    "carillon-attempt": attempt,
    "carillon-fence": fence,
  };
  const legacy = [timestamp, run, slot, attempt, fence];
  return {
    ...told,
    "carillon-timestamp": timestamp,
    ...(key === null ? {} : signatureHeaders(message, told, key, seconds)),
    ...(legacySecret === null
      ? {}
      : { "carillon-signature": `v1=${legacySignature(legacySecret, legacy, message.body)}` }),
  };
}

/** The legacy signature: HMAC-SHA256 of the lines and the body, in hexadecimal. It covers neither the method nor the URL. */
export function legacySignature(secret: string, lines: string[], body: Buffer | null): string {
  const hmac = createHmac("sha256", secret);
  for (const line of lines) hmac.update(`${line}\n`);
  return hmac.update(body ?? "").digest("hex");
}

/** Returns the headers of an RFC 9421 signature of method, URL, body and the given headers. @param told headers with lower-case names */
export function signatureHeaders({ method, url, body }: Message, told: object, key: SigningKey, seconds: number) {
  const digest = `sha-256=:${createHash("sha256")
    .update(body ?? "")
    .digest("base64")}:`;
  const { input, signature } = signed(
    [
      ["@method", method],
      ["@authority", url.host],
      ["@path", url.pathname],
      ["@query", url.search || "?"],
      ["content-digest", digest],
      ...Object.entries(told),
    ],
    key,
    seconds,
  );
  return {
    "content-digest": digest,
    "signature-input": `carillon=${input}`,
    signature: `carillon=:${signature}:`,
  };
}

/** Computes the signature of the components according to RFC 9421, sections 2.5 and 3.3.3. */
export function signed(
  components: [name: string, value: string][],
  { secret, keyId }: { secret: string | Buffer; keyId: string },
  seconds: number,
): { input: string; signature: string } {
  const names = components.map(([name]) => `"${name}"`).join(" ");
  const input = `(${names});created=${seconds};keyid="${keyId}"`;
  const base = [...components, ["@signature-params", input] as const].map(([name, value]) => `"${name}": ${value}`);
  return { input, signature: createHmac("sha256", secret).update(base.join("\n")).digest("base64") };
}

/**
 * Returns a function that selects the signing keys for a task's name and a URL's host name. The function warns if it uses the cluster's
 * secret for a namespace while other namespaces have secrets of their own, because a receiver that refuses a request does not say why.
 * Errors never contain a secret.
 * @param warn called at most once per namespace
 * @throws OPTION_INVALID for a host that is not written as in a URL, and for an empty secret
 */
export function signingKeys(
  { secret, namespaceSecrets = {}, legacySignature: legacy = true }: HttpTaskOptions,
  warn: (message: string) => void,
): (task: string, host: string) => SigningKeys {
  const secretFor = secretsByHost(secret);
  const own = new Map(
    Object.entries(namespaceSecrets).map(([name, given]) => [
      checkNamespace(name),
      checkedSecret("namespaceSecrets", given, `of ${name} `),
    ]),
  );
  const warned = new Set<string>();
  return (task, host) => {
    const namespace = namespaceOf(task);
    const shared = secretFor(host);
    const legacySecret = legacy ? shared : null;
    const secretOfNamespace = own.get(namespace);
    if (secretOfNamespace !== undefined)
      return { key: { secret: secretOfNamespace, keyId: `namespace:${namespace}` }, legacySecret };
    if (shared === null) return { key: null, legacySecret };
    if (own.size > 0 && !warned.has(namespace)) {
      warned.add(namespace);
      warn(
        `HTTP tasks of namespace ${namespace} are signed by the cluster's secret: httpTasks.namespaceSecrets has none for it`,
      );
    }
    return { key: { secret: shared, keyId: "cluster" }, legacySecret };
  };
}

function secretsByHost(secret: HttpTaskOptions["secret"]): (host: string) => string | null {
  if (secret === undefined) return () => null;
  if (typeof secret !== "object" || secret === null) {
    const all = checkedSecret("secret", secret, "");
    return () => all;
  }
  for (const [host, given] of Object.entries(secret)) {
    const meant = URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname : "";
    if (meant !== host || host.includes("*"))
      throw wrong(
        "secret",
        `has ${shownValue(host)}, which is no host of a URL`,
        'Give names as in "api.example.com", each by itself, without a port.',
      );
    checkedSecret("secret", given, `of ${host} `);
  }
  const byHost = new Map(Object.entries(secret));
  return (host) => byHost.get(host) ?? null;
}

function checkedSecret(option: string, given: unknown, whose: string): string {
  if (typeof given === "string" && given !== "") return given;
  throw wrong(
    option,
    `${whose}is empty or no text`,
    "Anybody could sign with it. Leave it out to send requests unsigned.",
  );
}

const wrong = (option: string, what: string, hint: string) =>
  new CarillonError("OPTION_INVALID", `httpTasks.${option} ${what}`, { hint });
