/** How much of one look counts against the limit at most: on a machine at rest a look takes less. */
const lookMs = 20;
const pauseMs = { least: 5, most: 25 };

/**
 * Waits until it is so, looking again and again: for what nothing signals. The pause after a look is as long as the look took, or a
 * fiftieth of the wait so far, within 5 to 25 ms: a long wait leaves the processor to the processes that it waits for.
 *
 * The limit holds for a machine that gives this process its turns. Where others take them, a look takes longer, and only its first
 * 20 ms count: the limit grows with the load.
 * @returns what the last look saw
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
