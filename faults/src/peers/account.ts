/** Computes figures from the processes' notes of each slot's executions: the same for every subject, in neutral terms. */

/** A run that was enqueued, or that a schedule has: it must run once, and not before its time. */
export interface Slot {
  readonly key: string;
  readonly dueMs: number;
}

/** A line of the processes' notes. `life`: of the process, counted from 1; `n`: of its executions. Times are epoch ms. */
export type Noted =
  | {
      readonly kind: "start";
      readonly atMs: number;
      readonly worker: string;
      readonly life: number;
      readonly n: number;
      readonly key: string;
      readonly forMs: number;
    }
  | { readonly kind: "end"; readonly atMs: number; readonly worker: string; readonly life: number; readonly n: number };

export interface Death {
  readonly worker: string;
  readonly life: number;
  readonly atMs: number;
}

/** A process was stopped (SIGSTOP) and went on. */
export interface StandStill extends Death {
  readonly untilMs: number;
}

export interface Figures {
  readonly slots: number;
  /** These four add up to all slots. */
  readonly never: number;
  /** Slots that began and never ended. */
  readonly unfinished: number;
  readonly once: number;
  readonly more_than_once: number;
  /** Slots that began more than once, or began and have not ended: those that began again … after their process had died, */
  readonly after_death: number;
  /** … beside an execution under way, */
  readonly two_at_once: number;
  /** (of these: beside one whose process stood still at that moment) */
  readonly beside_stopped: number;
  /** … after an execution that had ended well. */
  readonly after_end: number;
  readonly early: number;
  /** Lateness of the last first start, and of the last first good end. */
  readonly latest_start_ms: number;
  readonly latest_end_ms: number;
}

interface Execution {
  readonly startMs: number;
  /** The time of its successful end; Infinity if it did not end successfully. */
  readonly endMs: number;
  /** The time at which it was over, for any reason. */
  readonly overMs: number;
  readonly of: string;
}

/** Allowance for clocks of whole milliseconds, and rounded timers. */
const earlyMs = 2;

export function accountOf(
  slots: readonly Slot[],
  notes: readonly Noted[],
  deaths: readonly Death[],
  standStills: readonly StandStill[],
): Figures {
  const executions = executionsOf(notes, deaths);
  const count = { never: 0, unfinished: 0, once: 0, more_than_once: 0, early: 0 };
  const again = { after_death: 0, two_at_once: 0, beside_stopped: 0, after_end: 0 };
  let [latestStart, latestEnd] = [0, 0];
  for (const { key, dueMs } of slots) {
    const all = executions.get(key) ?? [];
    const firstMs = Math.min(...all.map(({ startMs }) => startMs));
    const endMs = Math.min(...all.map((one) => one.endMs));
    if (all.length === 0) count.never++;
    else if (endMs === Number.POSITIVE_INFINITY) count.unfinished++;
    else if (all.length === 1) count.once++;
    else count.more_than_once++;
    if (firstMs < dueMs - earlyMs) count.early++;
    if (Number.isFinite(firstMs)) latestStart = Math.max(latestStart, firstMs - dueMs);
    if (Number.isFinite(endMs)) latestEnd = Math.max(latestEnd, endMs - dueMs);
    const ways = new Set(all.slice(1).map((one, i) => wayOf(one, all.slice(0, i + 1), standStills)));
    for (const way of ways) again[way]++;
    if (ways.has("beside_stopped") && !ways.has("two_at_once")) again.two_at_once++;
  }
  return {
    slots: slots.length,
    ...count,
    ...again,
    latest_start_ms: Math.round(latestStart),
    latest_end_ms: Math.round(latestEnd),
  };
}

function wayOf(one: Execution, before: readonly Execution[], standStills: readonly StandStill[]) {
  const { startMs } = one;
  const beside = before.filter(({ overMs }) => overMs > startMs);
  const stopped = ({ of }: Execution) =>
    standStills.some((still) => processOf(still) === of && still.atMs <= startMs && startMs < still.untilMs);
  if (beside.length > 0) return beside.every(stopped) ? "beside_stopped" : "two_at_once";
  return before.some(({ endMs }) => endMs <= startMs) ? "after_end" : "after_death";
}

/** Executions by slot, in the order of their starts. */
function executionsOf(notes: readonly Noted[], deaths: readonly Death[]): Map<string, Execution[]> {
  const ends = new Map(
    notes.filter(({ kind }) => kind === "end").map((end) => [`${processOf(end)} ${end.n}`, end.atMs]),
  );
  const died = new Map(deaths.map((death) => [processOf(death), death.atMs]));
  const executions = new Map<string, Execution[]>();
  for (const note of notes) {
    if (note.kind !== "start") continue;
    const of = processOf(note);
    const endMs = ends.get(`${of} ${note.n}`) ?? Number.POSITIVE_INFINITY;
    const overMs = Math.min(endMs, died.get(of) ?? Number.POSITIVE_INFINITY);
    executions.set(note.key, [...(executions.get(note.key) ?? []), { startMs: note.atMs, endMs, overMs, of }]);
  }
  for (const all of executions.values()) all.sort((a, b) => a.startMs - b.startMs);
  return executions;
}

/** The executions that a process has under way, by its notes. */
export function underWay(notes: readonly Noted[], { worker, life }: Pick<Death, "worker" | "life">, nowMs: number) {
  const ended = new Set(notes.filter(({ kind }) => kind === "end").map((end) => `${processOf(end)} ${end.n}`));
  return notes.flatMap((note) =>
    note.kind === "start" && note.worker === worker && note.life === life && !ended.has(`${processOf(note)} ${note.n}`)
      ? [{ leftMs: note.atMs + note.forMs - nowMs }]
      : [],
  );
}

function processOf({ worker, life }: Pick<Death, "worker" | "life">): string {
  return `${worker} ${life}`;
}
