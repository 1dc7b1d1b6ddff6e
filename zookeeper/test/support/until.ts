/** The part of one check that counts against the limit at most: on a machine at rest a check takes less. */
const lookMs = 20;
const pauseMs = { least: 5, most: 25 };

/**
 * Waits until the condition holds, checking again and again: for states without a signal. The pause after a check is as long as the check
 * took, or a fiftieth of the wait so far, within 5 to 25 ms: a long wait leaves the processor to the processes that it waits for.
 *
 * The limit holds for a machine that gives this process its turns. On a busy machine a check takes longer, and only its first 20 ms count:
 * the limit grows with the load.
 * @returns the value of the last check
 * @throws when the limit has passed
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
