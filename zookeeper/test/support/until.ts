/** What one look counts against the limit at most: on a machine at rest a look and the pause after it take less. */
const lookMs = 25;
const pauseMs = 5;

/**
 * Waits until it is so, looking again and again: for what nothing signals. The limit holds for a machine that gives this process
 * its turns. Where others take them, a look takes longer, and only its first 25 ms count: the limit grows with the load.
 * @returns what the last look saw
 * @throws when the limit has passed
 */
export async function until<T>(
  what: string,
  look: () => Promise<T | undefined | false> | T | undefined | false,
  withinMs = 60_000,
): Promise<T> {
  let countedMs = 0;
  for (;;) {
    const began = performance.now();
    const seen = await look();
    if (seen) return seen;
    if (countedMs > withinMs) throw new Error(`waited ${withinMs} ms in vain for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    countedMs += Math.min(performance.now() - began, lookMs);
  }
}
