/** At most this many ms of each check count towards the time limit. On an idle machine a check takes less. */
const lookMs = 20;
const pauseMs = { least: 5, most: 25 };

/**
 * Waits until the condition holds by checking it repeatedly; for states that no event reports. The pause after a check is as long as the
 * check took or a fiftieth of the wait so far, whichever is longer, but 5 to 25 ms: a long wait leaves the processor to the awaited
 * processes.
 *
 * On a busy machine a check takes longer, but only its first 20 ms count, so that the limit grows with the load.
 * @returns the result of the last check
 * @throws if the limit has passed, or the error of a check
 */
export async function until<T>(
  what: string,
  look: () => Promise<T | undefined | false> | T | undefined | false,
  withinMs = 60_000,
): Promise<T> {
  const started = performance.now();
  let countedMs = 0;
  for (;;) {
    const began = performance.now();
    const seen = await look();
    if (seen) return seen;
    if (countedMs > withinMs) throw new Error(`waited ${withinMs} ms in vain for: ${what}`);
    const now = performance.now();
    const wanted = Math.max(now - began, (now - started) / 50);
    const pause = Math.min(Math.max(wanted, pauseMs.least), pauseMs.most);
    await new Promise((resolve) => setTimeout(resolve, pause));
    countedMs += Math.min(performance.now() - began, lookMs + pause);
  }
}
