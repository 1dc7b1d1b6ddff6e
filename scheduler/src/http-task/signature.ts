import { createHmac } from "node:crypto";

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
