import type { ServerResponse } from "node:http";
import type { Clock } from "../../base/clock.ts";

/**
 * The interval in ms at which the credential is checked. Credentials are cached for 500 ms, so a revocation on another server ends a
 * stream within about a second.
 */
const lookMs = 500;
const looksPerBeat = 30;

/**
 * Writes a comment to an event stream at intervals, as a keep-alive, and calls `stop` when the client may no longer receive events. The
 * result of a check is ignored after the stream has ended: a write after the end would be an unhandled error, which ends the process.
 * @param mayGoOn called at every check; a rejection ends the stream only at a check at which a comment would be written
 * @returns a function that ends the checks and comments
 */
export function beatLine(
  raw: Pick<ServerResponse, "write">,
  clock: Clock,
  mayGoOn: () => Promise<boolean>,
  stop: () => void,
): () => void {
  let over = false;
  let cancel: () => void = () => undefined;
  let looks = 0;
  const look = () => {
    cancel = clock.after(lookMs, async () => {
      looks++;
      const beats = looks % looksPerBeat === 0;
      // Between two comments, a failed check lets the stream continue. At a comment it ends the stream; the client then connects again and
      // receives the error.
      const goesOn = await mayGoOn().catch(() => !beats);
      if (over) return;
      if (!goesOn) return stop();
      if (beats) raw.write(": beat\n\n");
      look();
    });
  };
  look();
  return () => {
    over = true;
    cancel();
  };
}
