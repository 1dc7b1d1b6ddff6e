import type { Checker, Happening } from "../history.ts";

/**
 * The time in ms that a node may need to detect that its session is lost. A node may detect the loss only after it has joined the
 * cluster again, which requires that the store is reachable.
 */
const toldWithinMs = 15_000;

/**
 * Checks that a process loses its session only for a reason: it was suspended, or it did not reach the store. A coordination service that
 * fails or returns is not a reason. Used only for simulated seeds, because elsewhere not all disturbances are recorded.
 */
export const trustForCause: Checker = {
  invariant: "12: nobody is told that its session is in doubt without a cause",
  check({ executions, happenings, sessionTimeoutMs }) {
    for (const { node, run, endMs, stoppedWhy } of executions) {
      if (stoppedWhy !== "SESSION_LOST" || endMs === null) continue;
      const isCause = ({ atMs, what }: Happening) =>
        causes(node).some((start) => what.startsWith(start)) &&
        atMs <= endMs &&
        atMs + lasting(what) + sessionTimeoutMs + toldWithinMs >= endMs;
      if (!happenings.some(isCause)) return { what: `${node} was told so, and nothing had been`, run, atMs: endMs };
    }
    return undefined;
  },
};

const causes = (node: string) => [
  `${node} stands still`,
  `the line ${node} store is cut`,
  "the store is down",
  "the store stalls",
  "weather",
];

const lasting = (what: string): number => Number(/ for (\d+) ms/.exec(what)?.[1] ?? 0);
