import type { Holds } from "../cluster/drain-store.ts";
import { iso } from "./run-json.ts";

/** What a drain waits for, as the API and `--json` of the command line have it. */
export const holdsObject = ({ held, runs }: Holds) => ({
  held,
  runs: runs.map(({ startedMs, ...run }) => ({ ...run, started: iso(startedMs) })),
});
