/**
 * Chooses the worker for a run by pure functions over the workers that are alive. This module does not access the store. The statement that
 * stores a choice checks whether the choice is still valid.
 */
import type { Random } from "../base/random.ts";
import type { PolicyParts, Route } from "../task/policies.ts";

/** A worker that is alive, serves the task's group, and is not draining. */
export interface LiveWorker {
  node: string;
  sessionId: number;
  labels: Readonly<Record<string, string>>;
  /** The number of runs that the worker executes at once; null if it is not known. */
  capacity: number | null;
  /** The number of runs that the worker has claimed or that are addressed to it. */
  load: number;
  /** The number of these runs that belong to the task. */
  ofTask: number;
  /** The release (version) of the worker's code; null if it did not report one. */
  release: string | null;
}

/** The properties of a run by which a worker is chosen. */
export interface RouteRun {
  runId: number;
  /** The run's `limitKey`, or else its key; null if it has neither. */
  key: string | null;
  /** For a part of a split run: the part's index and the number of parts; null if the run is not split. */
  shard: readonly [index: number, total: number] | null;
  /** The release that the run is pinned to, see UnaddressedRun.release; null if it is not pinned. */
  release: string | null;
  /** True if a worker with that release is alive or was alive until a short while ago. */
  releaseStands: boolean;
}

/**
 * The turn at which each node last got a run of the task; a higher number is later. The map also contains nodes that have left.
 */
export type Turns = ReadonlyMap<string, number>;

type Policies = Pick<PolicyParts, "route" | "labels" | "limit" | "onReleaseGone">;

/**
 * Returns the workers that may run the task: those with all labels that it requires; if the task is pinned to a worker, only that worker.
 */
export function eligible({ route, labels = {} }: Policies, view: readonly LiveWorker[]): LiveWorker[] {
  const wanted = Object.entries(labels);
  return view.filter(
    (worker) =>
      wanted.every(([name, value]) => worker.labels[name] === value) &&
      (route?.by !== "pin" || worker.node === route.node),
  );
}

/**
 * @returns the chosen worker; "wait" if no worker can take the run now; "fail" if the run is pinned to a release that has no
 * workers any more and the task's `onReleaseGone` is "fail"
 */
export function choose(
  policies: Policies,
  view: readonly LiveWorker[],
  run: RouteRun,
  turns: Turns,
  random: Random,
): LiveWorker | "wait" | "fail" {
  const { release, releaseStands } = run;
  const own = release === null ? view : view.filter((worker) => worker.release === release);
  const chosen = chooseOf(policies, own, run, turns, random);
  if (chosen) return chosen;
  if (release === null || releaseStands || own.length > 0) return "wait";
  const { onReleaseGone } = policies;
  return onReleaseGone ?? chooseOf(policies, view, run, turns, random) ?? "wait";
}

function chooseOf(
  policies: Policies,
  view: readonly LiveWorker[],
  run: RouteRun,
  turns: Turns,
  random: Random,
): LiveWorker | undefined {
  const able = eligible(policies, view);
  const most = policies.limit?.perWorker ?? Number.POSITIVE_INFINITY;
  const free = able.filter(({ ofTask }) => ofTask < most);
  const by = policies.route?.by ?? "least-loaded";
  // With `hash` and `broadcast`, the worker is fixed and the run waits for it; other strategies choose among workers with a free slot.
  if (by === "hash") return roomAt(byHash(able, run.key ?? String(run.runId)), free);
  if (by === "broadcast")
    return roomAt(
      able.find(({ node }) => node === run.key),
      free,
    );
  return strategies[by](free, run, turns, random);
}

/** Returns the turns after a run was given to this node: the node gets the latest turn. */
export function turnTaken(turns: Turns, node: string): Map<string, number> {
  return new Map(turns).set(node, latest(turns).turn + 1);
}

type Strategy = (free: readonly LiveWorker[], run: RouteRun, turns: Turns, random: Random) => LiveWorker | undefined;

const strategies: Record<Exclude<Route["by"], "hash" | "broadcast">, Strategy> = {
  random: (free, _run, _turns, random) => free[Math.floor(random.next() * free.length)],
  /** Chooses the next node in the order of names after the node with the latest turn, even if that node has left. */
  "round-robin": (free, _run, turns) => {
    const { node } = latest(turns);
    const ring = [...free].sort(byName);
    return ring.find((worker) => worker.node > node) ?? ring[0];
  },
  /**
   * Chooses the node with the lowest load in relation to its capacity; among equally loaded nodes, the node whose turn is longest
   * ago.
   */
  "least-loaded": (free, _run, turns) =>
    least(free, (a, b) => loadOf(a) - loadOf(b) || turnOf(turns, a) - turnOf(turns, b) || byName(a, b)),
  "least-recently-used": (free, _run, turns) =>
    least(free, (a, b) => turnOf(turns, a) - turnOf(turns, b) || byName(a, b)),
  /** Chooses the node with the latest turn; if it has left or is full, the least loaded node, which is then used from now on. */
  sticky: (free, run, turns, random) =>
    free.find(({ node }) => node === latest(turns).node) ?? strategies["least-loaded"](free, run, turns, random),
  pin: (free) => free[0],
  /**
   * Chooses the node with the fewest runs of the task, so that all nodes get equally many parts. Among nodes with equally many
   * runs, it chooses the node with the highest weight for the part, so that a part tends to return to the same node.
   */
  shards: (free, { shard }) => {
    const part = String(shard?.[0] ?? 0);
    return least(free, (a, b) => a.ofTask - b.ofTask || weight(part, b.node) - weight(part, a.node) || byName(a, b));
  },
};

/**
 * Rendezvous hashing: a weight is computed for each pair of worker and key, and the worker with the highest weight gets the key.
 * When a worker leaves, only its keys move, about evenly to the others; when a worker joins, it gets about equally many keys from
 * each of them.
 */
export function byHash(view: readonly LiveWorker[], key: string): LiveWorker | undefined {
  return least(view, (a, b) => weight(key, b.node) - weight(key, a.node) || byName(a, b));
}

/** A 32-bit FNV-1a hash, mixed once more, so that names that differ in one letter get independent weights. */
function weight(key: string, node: string): number {
  let hash = 0x811c9dc5;
  for (const text of [node, "\0", key]) {
    for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

const roomAt = (worker: LiveWorker | undefined, free: readonly LiveWorker[]) =>
  worker && free.includes(worker) ? worker : undefined;
const byName = (a: LiveWorker, b: LiveWorker) => (a.node < b.node ? -1 : a.node > b.node ? 1 : 0);
const loadOf = ({ load, capacity }: LiveWorker) => load / Math.max(capacity ?? 1, 1);
const turnOf = (turns: Turns, { node }: LiveWorker) => turns.get(node) ?? 0;

function least(view: readonly LiveWorker[], compare: (a: LiveWorker, b: LiveWorker) => number): LiveWorker | undefined {
  return view.reduce<LiveWorker | undefined>((best, one) => (best && compare(best, one) <= 0 ? best : one), undefined);
}

function latest(turns: Turns): { node: string; turn: number } {
  let last = { node: "", turn: 0 };
  for (const [node, turn] of turns) if (turn > last.turn) last = { node, turn };
  return last;
}
