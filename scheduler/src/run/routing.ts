/**
 * Chooses the worker for a run: pure functions over the workers that are alive now. This module does not use the store; the conditional
 * write of the store decides whether a choice is still valid.
 */
import type { Random } from "../base/random.ts";
import type { PolicyParts, Route } from "../task/policies.ts";

/** A worker that lives, serves the task's group, and does not stop. */
export interface LiveWorker {
  node: string;
  sessionId: number;
  labels: Readonly<Record<string, string>>;
  /** How many runs the worker takes at once; null: not known. */
  capacity: number | null;
  /** The number of runs that the worker has or that are addressed to it. */
  load: number;
  /** How many of these runs belong to the task in question. */
  ofTask: number;
  /** The release of its code; null: not reported. */
  release: string | null;
}

/** The properties of a run that a choice depends on. */
export interface RouteRun {
  runId: number;
  /** The run's limit key, or else its key; null: neither. */
  key: string | null;
  /** The index of the run's part and the number of parts; null: the run is not split. */
  shard: readonly [index: number, total: number] | null;
  /** The release that the run is pinned to, see UnaddressedRun.release; null: none. */
  release: string | null;
  /** True if a worker of that release is alive, or was until a short while ago. */
  releaseStands: boolean;
}

/** When each node was last given a run of a task, as a number: the higher, the later. Nodes that are gone stay in the map. */
export type Turns = ReadonlyMap<string, number>;

type Policies = Pick<PolicyParts, "route" | "labels" | "limit" | "onReleaseGone">;

/** Returns the workers that may run the task: those with all of its labels; if it is pinned to a worker, only that one. */
export function eligible({ route, labels = {} }: Policies, view: readonly LiveWorker[]): LiveWorker[] {
  const wanted = Object.entries(labels);
  return view.filter(
    (worker) =>
      wanted.every(([name, value]) => worker.labels[name] === value) &&
      (route?.by !== "pin" || worker.node === route.node),
  );
}

/** @returns "wait": no worker can take the run now. "fail": no worker of its release is left, and the run may not go to another release */
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
  // Other strategies choose among workers with a free slot; with `hash` and `broadcast`, a run waits for its own worker.
  if (by === "hash") return roomAt(byHash(able, run.key ?? String(run.runId)), free);
  if (by === "broadcast")
    return roomAt(
      able.find(({ node }) => node === run.key),
      free,
    );
  return strategies[by](free, run, turns, random);
}

/** Returns the turns after a choice, in which this node has the latest turn. */
export function turnTaken(turns: Turns, node: string): Map<string, number> {
  return new Map(turns).set(node, latest(turns).turn + 1);
}

type Strategy = (free: readonly LiveWorker[], run: RouteRun, turns: Turns, random: Random) => LiveWorker | undefined;

const strategies: Record<Exclude<Route["by"], "hash" | "broadcast">, Strategy> = {
  random: (free, _run, _turns, random) => free[Math.floor(random.next() * free.length)],
  /** The next node by name after the node that had the last turn, even if that node is gone. */
  "round-robin": (free, _run, turns) => {
    const { node } = latest(turns);
    const ring = [...free].sort(byName);
    return ring.find((worker) => worker.node > node) ?? ring[0];
  },
  /** The lowest load in relation to capacity; among equal loads, the node whose turn was longest ago. */
  "least-loaded": (free, _run, turns) =>
    least(free, (a, b) => loadOf(a) - loadOf(b) || turnOf(turns, a) - turnOf(turns, b) || byName(a, b)),
  "least-recently-used": (free, _run, turns) =>
    least(free, (a, b) => turnOf(turns, a) - turnOf(turns, b) || byName(a, b)),
  /** The node that had the last turn; if it is gone or full, the least loaded node, which then has the last turn. */
  sticky: (free, run, turns, random) =>
    free.find(({ node }) => node === latest(turns).node) ?? strategies["least-loaded"](free, run, turns, random),
  pin: (free) => free[0],
  /**
   * Equal numbers of parts for all nodes; among equals, the node with the highest weight for the part, so that a part tends to return to
   * the same node.
   */
  shards: (free, { shard }) => {
    const part = String(shard?.[0] ?? 0);
    return least(free, (a, b) => a.ofTask - b.ofTask || weight(part, b.node) - weight(part, a.node) || byName(a, b));
  },
};

/**
 * Rendezvous hashing: a number is computed for each worker and key, and the worker with the highest number gets the key. When a worker
 * leaves, only its keys move, spread evenly over the others; when a worker joins, it gets its share from all.
 */
export function byHash(view: readonly LiveWorker[], key: string): LiveWorker | undefined {
  return least(view, (a, b) => weight(key, b.node) - weight(key, a.node) || byName(a, b));
}

/** 32 bits of FNV-1a, mixed once more, so that names that differ in one letter get independent numbers. */
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
