import { type RunSource, runSources } from "../../../run/run.ts";

/** `run.source` and `run_history.source`. */
export const sourceNumber = (source: RunSource): number => runSources.indexOf(source) + 1;
export const sourceOf = (number: number): RunSource => runSources[number - 1] ?? "enqueue";
