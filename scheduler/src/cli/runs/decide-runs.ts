import { CarillonError } from "../../base/errors.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { withCluster } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import type { CommonOptions } from "../store-choice.ts";

/** Records the operator's decision on a run whose worker was lost. */
export function decideRun(
  runId: number,
  how: string,
  options: CommonOptions & { reason?: string },
  terminal: Terminal,
): Promise<ExitCode> {
  if (how !== "retry" && how !== "fail")
    throw new CarillonError("USAGE", `${JSON.stringify(how)} is no decision`, { hint: "Give retry or fail." });
  return withCluster(options, async ({ cluster }) => {
    await cluster.runs.decide(runId, how, options.reason ?? "");
    if (terminal.json) terminal.object({ run: runId, decided: how });
    else terminal.line(how === "retry" ? `run ${runId} will run again` : `run ${runId} has failed`);
    return exitCodes.ok;
  });
}
