/** Groups failed runs by the reason for which they failed: how often, since when, and with which release the reason appeared. */

/** A run that failed. `release` is the release of its worker (see task/release.ts), `releaseMs` the time at which that release was new. */
export interface Failure {
  runId: number;
  task: string;
  endedMs: number;
  fingerprint: string;
  release: string | null;
  releaseMs: number | null;
}

export interface FailureGroup {
  fingerprint: string;
  runs: number;
  firstMs: number;
  lastMs: number;
  lastRunId: number;
  /** The names of the tasks, in alphabetical order. */
  tasks: string[];
  /**
   * The release with which the reason appeared: the release of the first failure, if that release began within the examined time. Null
   * otherwise, and if the worker of the first failure had no release.
   */
  broughtBy: string | null;
  /** The number of runs in each of equal parts of the time, the earliest first. */
  trend: number[];
}

/**
 * Returns the groups, the largest first.
 * @param failures all failures of the time, the newest first
 */
export function failureGroups(
  failures: readonly Failure[],
  { fromMs, toMs, parts }: { fromMs: number; toMs: number; parts: number },
): FailureGroup[] {
  const alike = new Map<string, [Failure, ...Failure[]]>();
  for (const failure of failures) {
    const others = alike.get(failure.fingerprint);
    if (others) others.push(failure);
    else alike.set(failure.fingerprint, [failure]);
  }
  const partOf = (ms: number) =>
    Math.min(parts - 1, Math.max(0, Math.floor(((ms - fromMs) / Math.max(1, toMs - fromMs)) * parts)));
  const groups = [...alike].map(([fingerprint, its]): FailureGroup => {
    const [last] = its;
    const first = its.at(-1) ?? last;
    const trend = new Array<number>(parts).fill(0);
    for (const { endedMs } of its) trend[partOf(endedMs)] = (trend[partOf(endedMs)] ?? 0) + 1;
    const isNew = first.releaseMs !== null && first.releaseMs > fromMs && first.releaseMs <= first.endedMs;
    return {
      fingerprint,
      runs: its.length,
      firstMs: first.endedMs,
      lastMs: last.endedMs,
      lastRunId: last.runId,
      tasks: [...new Set(its.map(({ task }) => task))].sort(),
      broughtBy: isNew ? first.release : null,
      trend,
    };
  });
  return groups.sort((a, b) => b.runs - a.runs || b.lastMs - a.lastMs);
}
