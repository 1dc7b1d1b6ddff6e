import { createHmac } from "node:crypto";
import { CarillonError } from "../../base/errors.ts";
import { shownValue } from "../../base/json.ts";
import type { HttpTaskOptions } from "../../settings/settings.ts";

/** Whom the request speaks for, as its headers say it; a run without a slot has none. */
export interface RunMarks {
  task: string;
  run: string;
  slot: string;
  attempt: string;
  fence: string;
}

/**
 * The headers that tell a receiver which run calls, and that it is this cluster that says so. Signed is all that tells
 * requests apart, one to a line: were only the body signed, a captured request could come again under another fence.
 * @param secret null: unsigned @param seconds since 1970
 */
export function runHeaders(marks: RunMarks, body: Buffer | null, secret: string | null, seconds: number) {
  const { task, run, slot, attempt, fence } = marks;
  const timestamp = String(seconds);
  return {
    // A task's name may have letters that a header cannot.
    "carillon-task": encodeURIComponent(task),
    "carillon-run": run,
    ...(slot === "" ? {} : { "carillon-slot": slot }),
    "carillon-attempt": attempt,
    "carillon-fence": fence,
    "carillon-timestamp": timestamp,
    ...(secret === null
      ? {}
      : { "carillon-signature": `v1=${signatureOf(secret, [timestamp, run, slot, attempt, fence], body)}` }),
  };
}

/** Hexadecimal HMAC-SHA256 over the lines and the body. */
export function signatureOf(secret: string, lines: string[], body: Buffer | null): string {
  const hmac = createHmac("sha256", secret);
  for (const line of lines) hmac.update(`${line}\n`);
  return hmac.update(body ?? "").digest("hex");
}

/**
 * Whose requests are signed is not to be found out from a receiver that refuses them. No error shows a secret.
 * @returns by a URL's host name; null: unsigned @throws OPTION_INVALID for a host that no URL has so, and a secret that is empty
 */
export function secretsByHost(secret: HttpTaskOptions["secret"]): (host: string) => string | null {
  const wrong = (what: string, hint: string) =>
    new CarillonError("OPTION_INVALID", `httpTasks.secret ${what}`, { hint });
  const checked = (given: unknown, whose: string) => {
    if (typeof given !== "string" || given === "")
      throw wrong(`${whose}is empty or no text`, "Anybody could sign with it. Leave it out to send requests unsigned.");
    return given;
  };
  if (secret === undefined) return () => null;
  if (typeof secret !== "object" || secret === null) {
    const all = checked(secret, "");
    return () => all;
  }
  for (const [host, given] of Object.entries(secret)) {
    const meant = URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname : "";
    if (meant !== host || host.includes("*"))
      throw wrong(
        `has ${shownValue(host)}, which is no host of a URL`,
        'Give names as in "api.example.com", each by itself, without a port.',
      );
    checked(given, `of ${host} `);
  }
  const byHost = new Map(Object.entries(secret));
  return (host) => byHost.get(host) ?? null;
}
