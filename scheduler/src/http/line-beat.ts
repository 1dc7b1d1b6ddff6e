import type { ServerResponse } from "node:http";
import type { Clock } from "../clock.ts";

const beatMs = 15_000;

/**
 * A comment now and then shows that a stream's line stands; whoever may no longer listen is told to `stop`. An answer that comes
 * when the stream is over changes nothing: a write behind its end is an error that nobody waits for, and ends the process.
 *
 * @param mayGoOn rejects where it cannot be told
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
  const beat = () => {
    cancel = clock.after(beatMs, async () => {
      // Why it cannot be told, whoever listens hears when it comes again.
      const goesOn = await mayGoOn().catch(() => false);
      if (over) return;
      if (!goesOn) return stop();
      raw.write(": beat\n\n");
      beat();
    });
  };
  beat();
  return () => {
    over = true;
    cancel();
  };
}
