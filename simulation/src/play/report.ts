import { isSmall, type Plan } from "../plan/plan.ts";
import type { Verdict } from "./simulate.ts";

const linesAround = 60;
const nearMs = 3_000;

/** Formats a violation as text: what is wrong, how to replay the seed, the faults, and the events around the violation. */
export function tell(plan: Plan, verdict: Verdict, places: readonly number[] | undefined): string {
  const { violation, trace } = verdict;
  if (!violation) return `seed ${plan.seed}: no violation, trace ${verdict.hash}`;
  const replay = `npm run prove -- simulate --seed ${plan.seed}${isSmall(plan.seed) && !plan.small ? " --full" : ""}${places ? ` --only ${places.join(",") || "none"}` : ""}`;
  const acts = plan.acts.map(({ atMs, act }) => `  ${seconds(atMs)} ${JSON.stringify(act)}`.slice(0, 240));
  return [
    `seed ${plan.seed} breaks "${violation.invariant}": ${subject(violation)}${violation.what}`,
    ...(violation.atMs === undefined ? [] : [`  at ${seconds(violation.atMs)}`]),
    `replay: ${replay}`,
    `what was done (${plan.nodes.length} nodes, session timeout ${plan.sessionTimeoutMs} ms, healed at ${seconds(plan.healMs)}):`,
    ...acts,
    "what happened around it:",
    ...around(trace, violation.atMs, violation.run).map((line) => `  ${line.trimEnd()}`),
  ].join("\n");
}

const seconds = (ms: number) => `${(ms / 1_000).toFixed(3)} s`;
const subject = ({ run, task }: { run?: number; task?: string }) =>
  run !== undefined ? `run ${run}: ` : task !== undefined ? `task ${task}: ` : "";

/**
 * Selects the lines of the trace that mention the run, and the lines near the time except heartbeats and looks for the next claim: at most
 * `linesAround` lines, three quarters of them before the time.
 */
function around(trace: readonly string[], atMs: number | undefined, run: number | undefined): string[] {
  const own = run === undefined ? undefined : new RegExp(`\\brun ${run}\\b`);
  const near = trace.filter((line) => {
    const at = Number.parseFloat(line);
    return (
      own?.test(line) || (atMs !== undefined && Math.abs(at - atMs) < nearMs && !/session-beat|claim-next/.test(line))
    );
  });
  const middle = near.findIndex((line) => atMs !== undefined && Number.parseFloat(line) >= atMs);
  const from = Math.max(0, (middle < 0 ? near.length : middle) - linesAround * 0.75);
  return near.slice(from, from + linesAround);
}
