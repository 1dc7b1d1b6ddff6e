import { isCarillonError } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";
import type { GroupStore } from "../../task/group-store.ts";
import type { Call, Some } from "../call.ts";
import { type Facts, isFull, reasonsOf } from "./explain-run.ts";

/** The handlers whose answers contain the facts for an explanation. */
type Reads = Some<"getRun" | "getTask" | "getCluster" | "listWorkers" | "listRuns">;

/** The maximum number of runs that are read to find those that hold a limit. */
const holdersRead = 20;

/**
 * Handles the routes that explain runs. The facts are the answers that the caller would get from other routes, so an explanation shows
 * nothing that the caller may not view. Only the group is read from the store, because the route of groups returns all of them.
 * @param handlers returns the handlers of all routes, which are not known when this is called
 */
export function explainCalls(
  handlers: () => Reads,
  groups: Pick<GroupStore, "find">,
): Some<"explainRun" | "explainRuns"> {
  const factsFor = factsBy(groups);
  return {
    async explainRun({ run }, call) {
      const reads = handlers();
      return explained(await reads.getRun({ run }, call), factsFor(reads, call));
    },

    async explainRuns({ run: numbers }, call) {
      const reads = handlers();
      const facts = factsFor(reads, call);
      const found = await Promise.all([...new Set(numbers)].map((run) => known(reads.getRun({ run }, call))));
      const seen = found.filter((run) => run !== null && call.reach.has(run.task)) as Facts["run"][];
      return { runs: await Promise.all(seen.map((run) => explained(run, facts))) };
    },
  };
}

async function explained(run: Facts["run"], factsOf: (run: Facts["run"]) => Promise<Facts>) {
  const { task, state, source, due, lateMs, tookMs, attempt, node } = run;
  const reasons = reasonsOf(await factsOf(run));
  return { run: run.run, task, state, source, due, lateMs, tookMs, attempt, node, reasons };
}

/**
 * Returns a function that reads the facts of a run. A fact that several runs share, such as a task or the workers of a group, is read once.
 */
const factsBy = (groups: Pick<GroupStore, "find">) => (reads: Reads, call: Call) => {
  const cluster = once(() => reads.getCluster({}, call));
  const taskOf = once((task: string) => known(reads.getTask({ task }, call)));
  const workersOf = once((group: string) => known(reads.listWorkers({ group, limit: limits.countedWorkers }, call)));
  const everyWorker = once(() => reads.listWorkers({ limit: limits.countedWorkers }, call));
  const groupOf = once(async (group: string) => (call.reach.has(group) ? groups.find(call.nowMs, group) : null));
  const ofTask = once(async (task: string) => {
    const { items } = await reads.listRuns(
      { task, state: ["ready", "claimed", "undecided"], limit: holdersRead },
      call,
    );
    return items.filter(({ state, due }) => state !== "ready" || Date.parse(due) <= call.nowMs);
  });
  const ofGroup = once(
    async (group: string) => (await reads.listRuns({ group, state: ["claimed"], limit: holdersRead }, call)).items,
  );
  /**
   * Returns workers among which a claimed run's worker is found if it lives: the workers of the task's group, or all workers if the group
   * does not have it, because the task may have moved to another group. Null if the caller may not view all workers, or if there are more
   * than one read returns.
   */
  const ofClaimed = async (run: Facts["run"], group: string | undefined) => {
    const own = group === undefined ? null : await workersOf(group);
    if (own?.items.some(({ node }) => node === run.node)) return own.items;
    const { items, next } = await everyWorker("");
    return next === null && call.reach.namespaces === null ? items : null;
  };
  return async (run: Facts["run"]): Promise<Facts> => {
    const [{ leader, now }, task] = await Promise.all([cluster(""), taskOf(run.task)]);
    const facts = { run, task, leader: leader?.node ?? null, nowMs: Date.parse(now), group: null, holders: [] };
    if (run.state === "claimed") return { ...facts, workers: await ofClaimed(run, task?.group) };
    if (run.state === "held") return { ...facts, workers: null, holders: await ofTask(run.task) };
    // Workers and group explain only a run that is ready and due, so they are not read for other runs.
    if (run.state !== "ready" || Date.parse(run.due) > facts.nowMs || task === null) return { ...facts, workers: null };
    const [workers, group] = await Promise.all([workersOf(task.group), groupOf(task.group)]);
    const holders = group && isFull(group) ? await ofGroup(group.name) : [];
    return { ...facts, workers: workers?.items ?? null, group, holders };
  };
};

/** Returns a function that reads each key at most once. */
function once<Read>(read: (key: string) => Promise<Read>): (key: string) => Promise<Read> {
  const made = new Map<string, Promise<Read>>();
  return (key) => {
    const reading = made.get(key) ?? read(key);
    made.set(key, reading);
    return reading;
  };
}

/** Returns null for a run or a task that does not exist, and for workers that the caller may not view. */
async function known<Read>(reading: Promise<Read>): Promise<Read | null> {
  try {
    return await reading;
  } catch (error) {
    if ((["RUN_UNKNOWN", "TASK_UNKNOWN", "ACCESS_DENIED"] as const).some((code) => isCarillonError(error, code)))
      return null;
    throw error;
  }
}
