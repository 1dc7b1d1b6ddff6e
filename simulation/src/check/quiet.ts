import type { Checker } from "../history.ts";

const spanMs = 10_000;
/**
 * The most heartbeats of a process within `spanMs`. Every signal of an election causes a heartbeat, and a failed heartbeat is repeated four
 * times a second.
 */
const mostBeats = 150;

/** Checks that no process sends more than `mostBeats` heartbeats within `spanMs`, as it would in a tight loop. */
export const quiet: Checker = {
  invariant: "16: nothing spins",
  check({ applied }) {
    const beats = new Map<string, number[]>();
    for (const { name, who, atMs } of applied) {
      if (name !== "session-beat") continue;
      const node = who.split("#")[0] as string;
      const own = beats.get(node) ?? [];
      beats.set(node, own);
      own.push(atMs);
      while ((own[0] as number) < atMs - spanMs) own.shift();
      if (own.length > mostBeats) return { what: `${node} beat ${own.length} times in ${spanMs} ms`, atMs };
    }
    return undefined;
  },
};
