import type { ServerResponse } from "node:http";
import type { Clock } from "../../base/clock.ts";

/** How often the credential is checked. Together with the cache of credentials, a revocation elsewhere takes effect within a second. */
const lookMs = 500;
const looksPerBeat = 30;

/**
 * Writes a comment at intervals, which shows that the stream's connection is alive; calls `stop` when the client may no longer listen. An
 * answer that arrives after the stream has ended is ignored: a write after the end would be an unhandled error and end the process.
 * @param mayGoOn called at every check; if it rejects, the stream ends at its next beat
 * @returns a function that ends the beat
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
      // The client learns the reason when it reconnects.
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
