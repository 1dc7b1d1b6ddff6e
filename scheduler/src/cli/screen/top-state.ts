import type { Member, Term } from "../../cluster/session-store.ts";
import { latenessMs } from "../../run/handling/lateness.ts";
import { outcomes } from "../../run/run.ts";
import type { RunRecord } from "../../run/run-record.ts";
import type { Cluster, ListedTask } from "../nodes/cluster.ts";

/** The number of runs of each kind that are read at most; a count of this size is shown as "200+". */
const runsRead = 200;
const recentMs = 60_000;
/**
 * A run counts as overdue this long after its due time, in ms. A worker with free capacity starts a due run at once, so an overdue run has
 * no worker, or waits for capacity.
 */
export const overdueMs = 1_000;
/** If the 99th percentile of the lateness of recent runs exceeds this value, in ms, late starts are reported as a problem. */
export const lateMs = 1_000;
const fewTasks = 500;
const oftenMs = 2_000;
const rarelyMs = 10_000;

/** The state of a cluster at the time `nowMs`, as `carillon top` shows it. */
export interface TopState {
  place: string;
  nowMs: number;
  tasks: ListedTask[];
  /** Due runs that a worker has claimed. */
  running: RunRecord[];
  /** Runs that have been due for more than `overdueMs` and that no worker has claimed, the longest overdue first. */
  overdue: RunRecord[];
  /** Runs that ended within the last minute, the latest first. */
  ended: RunRecord[];
  /** The number of open dead letters. `failing` groups these letters by the cause of the failure. */
  letters: number;
  failing: { reason: string; letters: number; tasks: string[]; lastMs: number }[];
  members: Member[];
  leader: Term | null;
}

/**
 * Reads a cluster repeatedly. Tasks and dead letters, which change rarely or cost more, are read at most every `oftenMs`; with more than
 * `fewTasks` tasks, every `rarelyMs`.
 */
export class TopReader {
  readonly #cluster: Cluster;
  #tasks: ListedTask[] = [];
  #failing: Pick<TopState, "letters" | "failing"> = { letters: 0, failing: [] };
  #readAtMs = Number.NEGATIVE_INFINITY;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  async read(): Promise<TopState> {
    const { runs, place, ...cluster } = this.#cluster;
    const askedMs = Math.round(cluster.nowMs());
    if (askedMs - this.#readAtMs >= (this.#tasks.length > fewTasks ? rarelyMs : oftenMs)) {
      this.#readAtMs = askedMs;
      const [tasks, { groups, total }] = await Promise.all([cluster.tasks.list(), cluster.dead.groups({})]);
      this.#tasks = tasks;
      const failing = groups.map(({ reason, letters, tasks: names, lastMs }) => ({
        letters,
        tasks: names,
        lastMs,
        reason: reason === null ? "(dropped by retention)" : [reason.code, reason.words].filter(Boolean).join(": "),
      }));
      this.#failing = { letters: total.letters, failing };
    }
    const [claimed, ready, ended, { members, leadership }, terms] = await Promise.all([
      runs.list({ states: ["claimed"], limit: runsRead }),
      runs.list({ states: ["ready"], limit: runsRead }),
      runs.list({ states: [...outcomes], sinceMs: askedMs - recentMs, limit: runsRead }),
      cluster.members(),
      cluster.terms(1),
    ]);
    const nowMs = cluster.nowMs();
    const due = ({ dueMs }: RunRecord) => dueMs <= nowMs;
    return {
      place,
      nowMs,
      tasks: this.#tasks,
      ...this.#failing,
      ended,
      members,
      running: claimed.filter(due),
      overdue: ready.filter(({ dueMs }) => nowMs - dueMs > overdueMs).sort((a, b) => a.dueMs - b.dueMs),
      leader: leadership.sessionId === null ? null : (terms.find(({ endedMs }) => endedMs === null) ?? null),
    };
  }
}

export interface Lateness {
  count: number;
  p50: number;
  p99: number;
  max: number;
}

/** The number of first attempts that started, and percentiles of their lateness in ms; null if no first attempt has started. */
export function latenessOf(runs: readonly RunRecord[]): Lateness | null {
  const late = runs
    .flatMap((run) => (run.startedMs === null || run.attempt > 1 ? [] : [latenessMs(run, run.startedMs)]))
    .sort((a, b) => a - b);
  if (late.length === 0) return null;
  const at = (part: number) => late[Math.min(late.length - 1, Math.floor(late.length * part))] as number;
  return { count: late.length, p50: at(0.5), p99: at(0.99), max: at(1) };
}

export const silentOf = ({ members, nowMs }: Pick<TopState, "members" | "nowMs">): Member[] =>
  members.filter(({ seenMs, timeoutMs }) => nowMs - seenMs > timeoutMs);

/** Lists the current problems, the worst first; an empty list if there is none. */
export function troublesOf(state: TopState): { text: string; bad: boolean }[] {
  const { overdue, leader, members, nowMs, ended } = state;
  const troubles: { text: string; bad: boolean }[] = [];
  const workers = members.filter(({ groups = [] }) => groups.length > 0);
  if (leader === null) troubles.push({ text: "nobody leads", bad: true });
  if (overdue.length > 0) {
    const [oldest] = overdue as [RunRecord];
    troubles.push({
      text: `${countText(overdue.length)} overdue, the oldest by ${secondsText(nowMs - oldest.dueMs)}`,
      bad: true,
    });
  }
  if (workers.length === 0) troubles.push({ text: "no worker", bad: true });
  const late = latenessOf(ended);
  if (late !== null && late.p99 > lateMs)
    troubles.push({ text: `runs start late, up to ${secondsText(late.max)}`, bad: false });
  const silent = silentOf(state);
  if (silent.length > 0) troubles.push({ text: `${silent.length} silent`, bad: false });
  return troubles;
}

export const countText = (count: number): string => (count >= runsRead ? `${runsRead}+` : String(count));
const secondsText = (ms: number): string => {
  const seconds = Math.round(ms / 100) / 10;
  return seconds < 60
    ? `${seconds} s`
    : seconds < 3_600
      ? `${Math.round(seconds / 60)} min`
      : `${Math.round(seconds / 3_600)} h`;
};

export const sortKeys = { n: "next", l: "late", f: "failed", r: "running", a: "name" } as const;
export type SortKey = keyof typeof sortKeys;

export interface TaskRow {
  name: string;
  words: string;
  nextMs: number | null;
  running: number;
  overdue: number;
  /** The greatest lateness, in ms, among the task's first attempts that ended recently, run, or are overdue; null if there are none. */
  lateMs: number | null;
  failed: number;
  succeeded: number;
  missed: number;
  paused: boolean;
  /** The final state of the task's most recently ended run; null if no run ended in the last minute. */
  last: RunRecord["state"] | null;
}

/** Returns one row per task, with the numbers of its runs, in the order of `sort`. */
export function taskRows({ tasks, running, overdue, ended, nowMs }: TopState, sort: SortKey): TaskRow[] {
  const count = (runs: readonly RunRecord[]) => {
    const counts = new Map<string, number>();
    for (const { task } of runs) counts.set(task, (counts.get(task) ?? 0) + 1);
    return counts;
  };
  const [runningOf, overdueOf] = [count(running), count(overdue)];
  const late = new Map<string, number>();
  const lastOf = new Map<string, RunRecord["state"]>();
  for (const { task, state } of ended) if (!lastOf.has(task)) lastOf.set(task, state);
  for (const run of [...ended, ...running, ...overdue])
    if (run.attempt <= 1)
      late.set(run.task, Math.max(late.get(run.task) ?? 0, latenessMs(run, run.startedMs ?? nowMs)));
  const rows = tasks.map(
    ({ name, words, next, paused, counters }): TaskRow => ({
      name,
      words,
      nextMs: next === null ? null : Date.parse(next),
      paused: paused !== null,
      running: runningOf.get(name) ?? 0,
      overdue: overdueOf.get(name) ?? 0,
      lateMs: late.get(name) ?? null,
      failed: counters.failed,
      succeeded: counters.succeeded,
      missed: counters.missed,
      last: lastOf.get(name) ?? null,
    }),
  );
  const least = Number.NEGATIVE_INFINITY;
  const by: Record<SortKey, (row: TaskRow) => number> = {
    n: ({ nextMs }) => nextMs ?? Number.POSITIVE_INFINITY,
    l: ({ lateMs: ms }) => -(ms ?? least),
    f: ({ failed }) => -failed,
    r: ({ running: now, overdue: waiting }) => -(now + waiting),
    a: () => 0,
  };
  return rows.sort((a, b) => compare(by[sort](a), by[sort](b)) || (a.name < b.name ? -1 : 1));
}

const compare = (a: number, b: number) => (a === b ? 0 : a < b ? -1 : 1);
