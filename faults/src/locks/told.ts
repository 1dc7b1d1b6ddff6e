import type { Attempt, GiveUp, Grant, LockHistory, LockWrite, Look } from "../../../simulation/src/lock-history.ts";
import type { LockNote } from "./notes.ts";
import type { Node } from "./store-watch.ts";

export interface Told {
  readonly notes: readonly LockNote[];
  /** The nodes seen at the service; undefined if the service does not show nodes. */
  readonly nodes: readonly Node[] | undefined;
  readonly writes: readonly LockWrite[];
  readonly graceMs: number;
  readonly endMs: number;
  readonly slackMs: number;
  readonly forgotMs: readonly number[];
}

/** Joins the notes of the processes and the nodes that the service showed into one history. */
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
  // The first process to note a fence has it: a second one would be detected by that. A process notes a fence when it gets it; a fence
  // under which it took the lock back, and which it has not checked yet, it notes first when it gives it up.
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
      // A process that only waited for the lock never notes a fence.
      if (half && !holder) return [];
      const fence = holder?.fence ?? node.fence;
      const process = holder?.process ?? node.owner ?? `session ${node.session}`;
      const owner = node.owner ?? process.replace(/ life \d+$/, "");
      // A use whose lock was lost and taken back as it ended releases it under a fence that its process did not note.
      const isGivenUp = released ?? unanswered.has(`${node.lock} ${fence}`);
      const ended = node.endedMs === null ? null : isGivenUp ? "released" : "vanished";
      return [{ ...node, fence, process, owner, ended, graceMs: node.lock === "nightly" ? graceMs : null }];
    });
  }

  /** In the order of the first beliefs: a holder that was stopped meanwhile notes its acquisition too late. */
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
    // There is no time without any fault.
    calmFromMs: Number.POSITIVE_INFINITY,
  };
}
