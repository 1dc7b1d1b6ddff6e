/**
 * Finds the reasons why a run waits, is late, has failed or was skipped. It uses only the API's answers about the run, its task,
 * the workers and the group, and has no side effects. Each reason has a code for programs, and the data that prove it.
 */

import type { Answer } from "../../api/contract.ts";
import { formatDuration } from "../../base/duration.ts";
import { type ErrorCode, errorCodes } from "../../base/errors.ts";
import { overridesOf, type RunPolicies } from "../../run/enqueue-options.ts";
import type { GroupRecord } from "../../task/group-store.ts";
import type { TaskDefinition } from "../../task/task.ts";

type Item<Page extends { items: unknown[] }> = Page["items"][number];
type Run = Answer<"getRun">;
type Worker = Item<Answer<"listWorkers">>;

export interface Facts {
  run: Run;
  /** The run's task; null: it was removed. */
  task: Answer<"getTask"> | null;
  /** The name of the leading node; null: there is no leader. */
  leader: string | null;
  /**
   * For a ready run that is due: the workers of its task's group; null if the caller may not view them. For a claimed run: a list that has
   * the run's worker if it lives; null if no such list could be read. For other runs: null.
   */
  workers: readonly Worker[] | null;
  /** The task's group; null if the run is not ready and due, or if the caller may not view the group. */
  group: Pick<GroupRecord, "name" | "limit" | "claimed" | "waiting"> | null;
  /**
   * Runs that may hold the limit for which this run waits. For a held run, runs of its task; for a ready run, claimed runs of its group.
   */
  holders: readonly Item<Answer<"listRuns">>[];
  /** The store's time in epoch ms. */
  nowMs: number;
}

export interface Reason {
  code: string;
  words: string;
  /** The data that prove the reason. */
  shown: Record<string, unknown>;
}

const reason = (code: string, words: string, shown: Record<string, unknown> = {}): Reason => ({ code, words, shown });
const span = (ms: number) => formatDuration(Math.max(0, Math.round(ms)));
const msOf = (time: string | null): number | null => (time === null ? null : Date.parse(time));

/** Delays of up to this many ms are normal, and are not reported as reasons. */
const usualMs = 1_000;

export function reasonsOf(facts: Facts): Reason[] {
  const { run } = facts;
  switch (run.state) {
    case "held":
      return heldReasons(facts);
    case "paused":
      return [pausedReason(facts)];
    case "ready":
      return readyReasons(facts);
    case "claimed":
      return [...claimedReasons(facts), ...delays(facts)];
    case "undecided":
      return [
        reason(
          "worker-lost",
          "Its worker was lost, and its task leaves the decision to an operator (carillon runs decide).",
        ),
      ];
    default:
      return [...endReasons(facts), ...delays(facts)];
  }
}

const definitionOf = ({ task }: Facts) => task?.definition as unknown as TaskDefinition | undefined;

function pausedReason({ task, run }: Facts): Reason {
  const paused = task?.paused ?? null;
  const until = paused === null || paused.until === null ? "until it is resumed" : `until ${paused.until}`;
  return reason("task-paused", `Its task is paused, so the run waits ${until}.`, { run: run.run, paused });
}

/** The most runs that a reason names as holding a limit. */
const holdersShown = 5;

/** The holders as a reason shows them, without the run itself. */
const byOf = ({ run, holders }: Facts) =>
  holders
    .filter((one) => one.run !== run.run)
    .slice(0, holdersShown)
    .map(({ run, task, node }) => ({ run, task, node }));

function heldReasons(facts: Facts): Reason[] {
  const { run, leader, holders } = facts;
  const key = run.limitKey ?? run.key;
  const { overlap, limit, rate } = definitionOf(facts) ?? {};
  const waits = notDue(facts);
  const found: Reason[] = waits ? [waits] : [];
  if (overlap?.limit != null)
    found.push(
      reason("overlap", `It waits for other runs of its task: ${overlap.limit} may be under way at once.`, {
        overlap,
        by: byOf(facts),
      }),
    );
  if (limit?.perKey != null)
    found.push(
      reason(
        "limit-key",
        `It may wait for runs with the same key: ${limit.perKey} of a key may be under way at once.`,
        {
          limit,
          key,
          by: byOf({ ...facts, holders: holders.filter((one) => (one.limitKey ?? one.key) === key) }),
        },
      ),
    );
  found.push(...workerLimitReasons(facts));
  if (rate)
    found.push(reason("rate", `It may wait for the rate: ${rate.limit} attempts in ${span(rate.perMs)}.`, { rate }));
  if (leader === null) found.push(reason("leaderless", "No node leads."));
  if (found.length === 0)
    found.push(reason("held", "It waits for a slot of concurrency of its task.", { by: byOf(facts) }));
  return found;
}

/**
 * The reason that a run waits because of a limit per worker. The caller uses it for held runs, and for ready runs that are addressed to no
 * worker.
 */
function workerLimitReasons(facts: Facts): Reason[] {
  const { limit } = definitionOf(facts) ?? {};
  if (limit?.perWorker == null) return [];
  const words = `It may wait for a worker: each has at most ${limit.perWorker} runs of this task.`;
  return [reason("limit-worker", words, { limit })];
}

/** True if the group's limit lets no worker claim more of its runs. */
export const isFull = ({ limit, claimed }: NonNullable<Facts["group"]>): boolean => limit !== null && claimed >= limit;

/** The reason that the run waits for its own time; undefined if it is due. */
function notDue({ run, nowMs }: Facts): Reason | undefined {
  const leftMs = Date.parse(run.due) - nowMs;
  if (leftMs <= 0) return undefined;
  const words = run.attempt > 1 ? `Attempt ${run.attempt} is due in ${span(leftMs)}` : `It is due in ${span(leftMs)}`;
  return reason("not-due", `${words}.`, { due: run.due, attempt: run.attempt });
}

function readyReasons(facts: Facts): Reason[] {
  const { run, task, group, workers, nowMs } = facts;
  const waits = notDue(facts);
  if (waits) return [waits];
  const overdueMs = nowMs - Date.parse(run.due);
  if (task === null) return [reason("task-removed", "Its task was removed.")];
  const found: Reason[] = [];
  if (group && isFull(group))
    found.push(
      reason("group-limit", `Its group is at its limit: ${group.claimed} of ${group.limit} runs are claimed.`, {
        group: group.name,
        limit: group.limit,
        claimed: group.claimed,
        by: byOf(facts),
      }),
    );
  const missing =
    workers === null
      ? reason("workers-hidden", "The caller may not see the workers of its group.")
      : workerReason(facts, workers);
  if (missing) found.push(missing);
  else if (run.addressee === null) found.push(...workerLimitReasons(facts));
  if (found.length === 0)
    found.push(
      reason(
        "claimable",
        `It has been due for ${span(overdueMs)}, and a worker with free capacity could claim it. Runs of a higher priority come first.`,
        { priority: run.priority, waitingInGroup: group?.waiting ?? null },
      ),
    );
  return found;
}

/** Narrows the workers by one condition after the other, from general to specific. Returns the first condition that leaves none. */
function workerReason(facts: Facts, workers: readonly Worker[]): Reason | undefined {
  const { run, task } = facts;
  const { group = null, labels = {} } = task ?? {};
  const handler = task?.of ?? task?.name ?? "";
  const conditions: [code: string, words: string, meets: (worker: Worker) => boolean][] = [
    ["no-worker", "No worker serves its group.", ({ groups }) => groups.includes(group ?? "")],
    ["workers-silent", "Every worker of its group is silent: its heartbeat is overdue.", ({ silent }) => !silent],
    ["workers-draining", "Every live worker of its group is drained or stops.", ({ draining }) => !draining],
    [
      "addressee-away",
      "It is addressed to one worker, which is not there.",
      ({ node }) => run.addressee === null || node === run.addressee,
    ],
    [
      "no-handler",
      "No live worker of its group has a handler for its task.",
      ({ tasks }) => tasks === null || tasks.includes(handler),
    ],
    [
      "no-labels",
      "No live worker of its group has the labels that its task asks for.",
      (worker) => Object.entries(labels).every(([name, text]) => worker.labels[name] === text),
    ],
    [
      "workers-busy",
      "Every worker that could claim it has as many runs as its capacity.",
      ({ held, capacity }) => held < (capacity ?? 1),
    ],
  ];
  let left = workers;
  for (const [code, words, meets] of conditions) {
    const before = left;
    left = before.filter(meets);
    if (left.length > 0) continue;
    const seen = before.slice(0, 5).map(({ node, held, capacity }) => ({ node, held, capacity }));
    return reason(code, words, { group, workers: before.length, seen });
  }
  return undefined;
}

function claimedReasons(facts: Facts): Reason[] {
  const { run, workers, nowMs } = facts;
  const worker = workers?.find(({ node }) => node === run.node);
  const shown = { node: run.node, claimed: run.claimed, started: run.started };
  const found: Reason[] = [];
  const startedMs = msOf(run.started);
  if (startedMs === null)
    found.push(reason("not-started", "A worker has claimed it, and has not reported its start.", shown));
  else {
    const { timeoutMs = null } = definitionOf(facts) ?? {};
    const words = timeoutMs === null ? "It has no timeout." : `Its timeout is ${span(timeoutMs)}.`;
    found.push(
      reason("running", `It has been running for ${span(nowMs - startedMs)}. ${words}`, { ...shown, timeoutMs }),
    );
  }
  if (worker?.silent)
    found.push(reason("worker-silent", "The heartbeat of its worker is overdue.", { seen: worker.seen }));
  if (worker && worker.stillMs !== null)
    found.push(
      reason("worker-stands-still", `The event loop of its worker has not turned for ${span(worker.stillMs)}.`),
    );
  if (workers !== null && !worker && run.node !== null)
    found.push(reason("worker-gone", "Its worker is not among the live workers.", { node: run.node }));
  return found;
}

const meaningOf = (code: string | undefined): string =>
  code !== undefined && Object.hasOwn(errorCodes, code) ? ` ${errorCodes[code as ErrorCode]}` : "";

function endReasons(facts: Facts): Reason[] {
  const { run } = facts;
  const own = run.overrides && overridesOf(run.overrides as RunPolicies);
  const retry = own?.retry ?? definitionOf(facts)?.retry;
  if (run.state === "succeeded") return [];
  const { code } = run.error ?? {};
  const found: Reason[] = [];
  if (run.state === "failed") {
    const tries = retry ? ` ${own?.retry ? "It" : "Its task"} allows ${retry.attempts} attempts.` : "";
    const words = `Attempt ${run.attempt} failed, and no other follows.${tries}${meaningOf(code)}`;
    found.push(reason("failed", words, { error: run.error, attempt: run.attempt, attempts: retry?.attempts ?? null }));
  } else found.push(reason(run.state, `It was ${run.state}.${meaningOf(code)}`, { error: run.error }));
  if (run.letter)
    found.push(reason("dead-letter", `It is a dead letter, ${run.letter.state}.`, { letter: run.letter }));
  if (run.late.length > 0)
    found.push(
      reason("late-results", "A worker reported a result after the run was no longer its own.", { late: run.late }),
    );
  return found;
}

/** Returns the delays that are longer than usual until the run started, and its earlier attempts. */
function delays({ run }: Facts): Reason[] {
  const dueMs = Date.parse(run.due);
  const [createdMs, claimedMs, startedMs] = [Date.parse(run.created), msOf(run.claimed), msOf(run.started)];
  const found: Reason[] = [];
  const add = (code: string, fromMs: number, toMs: number | null, words: (text: string) => string) => {
    const ms = (toMs ?? fromMs) - fromMs;
    if (ms > usualMs) found.push(reason(code, words(span(ms)), { ms: Math.round(ms) }));
  };
  if (run.source === "slot")
    add(
      "planned-late",
      dueMs,
      createdMs,
      (text) => `It was planned ${text} after it was due: no node planned in time, or it was caught up on.`,
    );
  const readyMs = dueMs + (run.ownWaitMs ?? 0);
  add(
    "own-wait",
    Math.max(dueMs, createdMs),
    Math.max(readyMs, createdMs),
    (text) => `It waited ${text} for its own limit, rate, predecessor or pause.`,
  );
  add(
    "claimed-late",
    Math.max(readyMs, createdMs),
    claimedMs,
    (text) => `It was claimed ${text} after it could first be: no worker was free.`,
  );
  add(
    "started-late",
    Math.max(dueMs, claimedMs ?? dueMs),
    startedMs,
    (text) => `Its worker started it ${text} after it had it and it was due.`,
  );
  if (run.attempts.length > 0)
    found.push(
      reason("retried", `${run.attempts.length} attempts came before, and the retry delay between them.`, {
        attempts: run.attempts.map(({ attempt, outcome, node, ended, error }) => ({
          attempt,
          outcome,
          node,
          ended,
          error,
        })),
      }),
    );
  return found;
}
