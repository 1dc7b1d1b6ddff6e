import { type RunSource, runSources } from "../../../run/run.ts";

/** Returns the number that the columns `run.source` and `run_history.source` hold for a source. */
export const sourceNumber = (source: RunSource): number => runSources.indexOf(source) + 1;
export const sourceOf = (number: number): RunSource => runSources[number - 1] ?? "enqueue";
