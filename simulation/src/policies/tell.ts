import type { Seen } from "./seen.ts";

const told = [
  ...(["key", "limitKey", "slotMs", "createdMs", "dueMs", "claimedMs"] as const),
  ...(["startedMs", "endedMs", "priority", "attempt"] as const),
];

/** Formats acts and observations, one per line; times are ms from the scenario's beginning. */
export function tell({ scenario, done, tries, runs, tasks, told: logged }: Seen): string {
  const lines = [JSON.stringify({ concurrency: scenario.concurrency, tasks: scenario.tasks })];
  for (const { act, fromMs, ...answer } of done)
    lines.push(`${fromMs} ${JSON.stringify(act)} ${JSON.stringify(answer)}`);
  for (const { runId, attempt, fromMs, end, abort } of tries)
    lines.push(
      `run ${runId} try ${attempt}: ${fromMs} to ${end?.atMs} ${end?.how ?? ""} ${abort ? `${abort.code} ${abort.atMs}` : ""}`,
    );
  for (const { runId, of, state, source, letter, ...run } of runs) {
    const parts = Object.fromEntries(told.map((field) => [field, run[field]]));
    lines.push(
      `run ${runId} of task ${of}, ${source}: ${state} ${JSON.stringify(parts)} letter ${letter?.state ?? "none"}`,
    );
  }
  for (const [of, { counters, slots, ranges }] of tasks.entries())
    lines.push(`task ${of} ${JSON.stringify({ counters, slots, ranges })}`);
  lines.push(...logged.map((line) => `log: ${line}`));
  return lines.join("\n");
}
