/** Computes figures from the logged executions of each slot, in the same way for Carillon and its peers. */

/** A run that was enqueued, or is due by a schedule. It must run exactly once, and not before its time. */
export interface Slot {
  readonly key: string;
  readonly dueMs: number;
}

/** A line of the log. `life` counts the starts of the process from 1, `n` the executions in it. Times are epoch ms. */
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

/** A process was stopped (SIGSTOP) at `atMs` and continued at `untilMs`. */
export interface StandStill extends Death {
  readonly untilMs: number;
}

export interface Figures {
  readonly slots: number;
  /** Number of slots that never began; `never`, `unfinished`, `once` and `more_than_once` add up to all slots. */
  readonly never: number;
  /** Number of slots that began and never ended successfully. */
  readonly unfinished: number;
  readonly once: number;
  readonly more_than_once: number;
  /** Number of slots that started again after all earlier executions had ended with the death of their process. */
  readonly after_death: number;
  /** Number of slots that started again while an earlier execution was in progress. */
  readonly two_at_once: number;
  /** The part of `two_at_once` in which every earlier execution in progress was in a process that was stopped (SIGSTOP) at that moment. */
  readonly beside_stopped: number;
  /** Number of slots that started again after an earlier execution had ended successfully. */
  readonly after_end: number;
  readonly early: number;
  /** The highest lateness in ms of a slot's first start; `latest_end_ms`: of its first successful end. */
  readonly latest_start_ms: number;
  readonly latest_end_ms: number;
}

interface Execution {
  readonly startMs: number;
  /** The time of the successful end; Infinity if there was none. */
  readonly endMs: number;
  /** The time of the successful end or of the death of its process, whichever came first. */
  readonly overMs: number;
  readonly of: string;
}

/** A start counts as early only by more than this many ms, because clocks and timers are rounded. */
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

/** Returns the executions by slot, in the order of their starts. */
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

/** Returns the executions in progress in a process according to its log, with the ms that each still takes. */
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
