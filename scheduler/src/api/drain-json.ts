import type { Holds } from "../cluster/drain-store.ts";
import { iso } from "./run-json.ts";

/** The claims and runs for which a drain waits, in the form of the API and of the command line's `--json`. */
export const holdsObject = ({ held, runs }: Holds) => ({
  held,
  runs: runs.map(({ startedMs, ...run }) => ({ ...run, started: iso(startedMs) })),
});
