import type { RunSource } from "../../../run/run-record.ts";

const names = ["slot", "enqueue", "manual", "child", "after", "chain", "join"] as const satisfies RunSource[];

/** `run.source` and `run_history.source`. */
export const sourceNumber = (source: RunSource): number => names.indexOf(source) + 1;
export const sourceOf = (number: number): RunSource => names[number - 1] ?? "enqueue";
