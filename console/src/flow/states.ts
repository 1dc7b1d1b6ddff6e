/** The states of the tasks of a graph: how the last run of each ended, and how many of its runs are in progress. */
import { useMemo } from "react";
import { useAnswer, useAnswers } from "../api/answers.ts";
import type { Shown } from "../parts/state/mark.tsx";

/** The most tasks of one request; the contract's limit. */
const tasksAtOnce = 100;
const runningMost = 200;
const everyMs = 5_000;

export interface Doing {
  /** Undefined for a task that has not run yet. */
  state: Shown | undefined;
  running: number;
}

export function useDoing(names: readonly string[]): (task: string) => Doing {
  const parts = Array.from({ length: Math.ceil(names.length / tasksAtOnce) }, (_, at) => ({
    task: names.slice(at * tasksAtOnce, (at + 1) * tasksAtOnce),
    each: 1,
  }));
  const recent = useAnswers("listRecentRuns", parts, { everyMs });
  const claimed = useAnswer("listRuns", { state: ["claimed"], limit: runningMost }, { everyMs });
  const lasts = recent.flatMap(({ data }) => data?.tasks ?? []);
  const running = useMemo(() => {
    const counts = new Map<string, number>();
    for (const { task } of claimed.data?.items ?? []) counts.set(task, (counts.get(task) ?? 0) + 1);
    return counts;
  }, [claimed.data]);
  const last = new Map(lasts.map(({ task, runs }) => [task, runs[0]?.state]));
  return (task) => {
    const n = running.get(task) ?? 0;
    return { state: n > 0 ? "running" : last.get(task), running: n };
  };
}
