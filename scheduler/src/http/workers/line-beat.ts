import type { ServerResponse } from "node:http";
import type { Clock } from "../../base/clock.ts";

/** A credential that was revoked elsewhere is known to be within this and what is remembered of it, a second together. */
const lookMs = 500;
const looksPerBeat = 30;

/**
 * A comment now and then shows that a stream's line stands; whoever may no longer listen is told to `stop`. An answer that comes
 * when the stream is over changes nothing: a write behind its end is an error that nobody waits for, and ends the process.
 *
 * @param mayGoOn asked at every look; rejects where it cannot be told, which ends the stream at its next beat
 * @returns ends the beat
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
      // Why it cannot be told, whoever listens hears when it comes again.
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
