import type { Attempt, GiveUp, Grant, LockHistory, LockWrite, Look } from "../../../simulation/src/lock-history.ts";
import type { LockNote } from "./notes.ts";
import type { Node } from "./store-watch.ts";

export interface Told {
  readonly notes: readonly LockNote[];
  /** The grants that the service showed; undefined if it does not show grants. */
  readonly nodes: readonly Node[] | undefined;
  readonly writes: readonly LockWrite[];
  readonly graceMs: number;
  readonly endMs: number;
  readonly slackMs: number;
  readonly forgotMs: readonly number[];
}

/** Joins the processes' log lines and the grants that the service showed into one history, which the checks read. */
export function lockHistoryOf({ notes, nodes, writes, graceMs, endMs, slackMs, forgotMs }: Told): LockHistory {
  const looks: Look[] = notes.flatMap((one) => (one.n === "look" ? [{ ...one, permits: 1 }] : []));
  const attempts: Attempt[] = notes.flatMap((one) =>
    one.n === "got"
      ? [{ lock: one.lock, process: one.process, askedMs: one.askedMs, endedMs: one.atMs, fence: one.fence }]
      : [],
  );
  const giveUps: GiveUp[] = notes.flatMap((one) => {
    if (one.n !== "releasing") return [];
    const { lock, process, fence, atMs } = one;
    const answer = notes.find(
      (other) => other.n === "released" && other.lock === lock && other.process === process && other.fence === fence,
    );
    return [{ lock, process, fence, atMs, changed: answer?.n === "released" && answer.changed }];
  });
  const holders = new Map<string, { process: string; fence: number }>();
  // The first process that logs a fence is its holder; the checks would detect a second one. A process logs a fence when it acquires the
  // lock. A fence under which it took the lock back may be logged only at its next check, or when it releases the lock.
  const sayings = notes.filter((one) => one.n !== "released").sort((a, b) => a.atMs - b.atMs);
  for (const { lock, process, fence } of sayings)
    if (fence !== null && !holders.has(`${lock} ${fence}`)) holders.set(`${lock} ${fence}`, { process, fence });
  const unanswered = new Set(
    giveUps
      .filter(
        ({ lock, fence, changed }) =>
          changed || !notes.some((one) => one.n === "released" && one.lock === lock && one.fence === fence),
      )
      .map(({ lock, fence }) => `${lock} ${fence}`),
  );
  const grants = nodes ? grantsOf(nodes) : spoken();

  function grantsOf(shown: readonly Node[]): Grant[] {
    return shown.flatMap(({ half, released, ...node }) => {
      const [holder] = [...holders].flatMap(([key, one]) =>
        key.startsWith(`${node.lock} `) && (half ? one.fence % 2 ** 32 : one.fence) === node.fence ? [one] : [],
      );
      // Only half of the fence is known and no process logged it: that process only waited for the lock.
      if (half && !holder) return [];
      const fence = holder?.fence ?? node.fence;
      const process = holder?.process ?? node.owner ?? `session ${node.session}`;
      const owner = node.owner ?? process.replace(/ life \d+$/, "");
      // If the lock was lost and taken back just as the use ended, the process releases it under a fence that it never logged.
      const isGivenUp = released ?? unanswered.has(`${node.lock} ${fence}`);
      const ended = node.endedMs === null ? null : isGivenUp ? "released" : "vanished";
      return [{ ...node, fence, process, owner, ended, graceMs: node.lock === "nightly" ? graceMs : null }];
    });
  }

  /**
   * Derives the grants from the processes' logs, in the order of their first checks, because a holder that was stopped may log its
   * acquisition too late.
   */
  function spoken(): Grant[] {
    const firsts = new Map<string, Look>();
    for (const look of looks) {
      const key = `${look.lock} ${look.fence}`;
      const known = firsts.get(key);
      if (!known || look.atMs < known.atMs) firsts.set(key, look);
    }
    return [...firsts.values()]
      .sort((a, b) => a.atMs - b.atMs)
      .map(({ lock, process, fence, atMs }) => ({
        lock,
        process,
        fence: fence as number,
        owner: process.replace(/ life \d+$/, ""),
        session: "untold",
        givenMs: atMs,
        endedMs: null,
        ended: null,
        graceMs: null,
      }));
  }

  return {
    grants,
    giveUps,
    looks,
    acts: [],
    writes,
    attempts,
    endMs,
    slackMs,
    forgotMs,
    // The checks for times without faults do not apply, because faults occur all the time.
    calmFromMs: Number.POSITIVE_INFINITY,
  };
}
