import type { Execution, History, Violation } from "../../simulation/src/history.ts";

const nearMs = 4_000;
const linesAround = 80;

interface Line {
  readonly atMs: number;
  readonly what: string;
  readonly run?: number;
}

/** Returns what was recorded, without the heartbeats, as lines in the order of time. */
export function linesOf({ happenings, executions, operations, applied }: History): Line[] {
  const lines: Line[] = happenings.map(({ atMs, what }) => ({ atMs, what }));
  for (const { node, run, task, attempt, fence, startMs, endMs, how, dueMs, startStoreMs } of executions) {
    const of = `run ${run} of ${task} attempt ${attempt} fence ${fence}`;
    lines.push({
      atMs: startMs,
      run,
      what: `${node} starts ${of}, ${Math.round(startStoreMs - dueMs)} ms after it was due`,
    });
    if (endMs !== null) lines.push({ atMs: endMs, run, what: `${node} ends ${of}: ${how}` });
  }
  for (const { id, kind, task, node, invokedMs, endedMs, outcome, answer, run } of operations) {
    lines.push({ atMs: invokedMs, what: `${id} ${kind} ${task} ${run ?? ""} at ${node}` });
    if (endedMs !== null) lines.push({ atMs: endedMs, what: `${id} ${outcome} ${answer}` });
  }
  for (const { atMs, name, who, values, rows } of applied) {
    if (name === "session-beat") continue;
    const run = rows[0]?.runId as number | undefined;
    lines.push({ atMs, run, what: `the store: ${name} ${who} ${JSON.stringify(values)} ${JSON.stringify(rows)}` });
  }
  return lines.sort((a, b) => a.atMs - b.atMs);
}

/** Describes a violation: which invariant was broken, and the recorded lines around it. */
export function tell(history: History, { invariant, what, run, task, atMs }: Violation): string {
  const subject = run !== undefined ? `run ${run}: ` : task !== undefined ? `task ${task}: ` : "";
  const lines = linesOf(history);
  const near = lines.filter(
    (line) => (run !== undefined && line.run === run) || (atMs !== undefined && Math.abs(line.atMs - atMs) < nearMs),
  );
  const shown = near.length > 0 ? near : lines;
  const middle = shown.findIndex((line) => atMs !== undefined && line.atMs >= atMs);
  const from = Math.max(0, (middle < 0 ? shown.length : middle) - linesAround * 0.75);
  return [
    `BROKEN "${invariant}": ${subject}${what}`,
    ...shown.slice(from, from + linesAround).map((line) => `  ${seconds(line.atMs)} ${line.what.slice(0, 300)}`),
  ].join("\n");
}

const seconds = (ms: number) => `${(ms / 1_000).toFixed(3)} s`;

export interface Figures {
  runs: number;
  executions: number;
  slots: number;
  operations: number;
  /** Number of handlers that ran while a later attempt of their run did. This is allowed, because the fence protects against it. */
  overlapped: number;
}

export function figuresOf({ executions, dump, operations }: History): Figures {
  const byRun = new Map<number, Execution[]>();
  for (const execution of executions) byRun.set(execution.run, [...(byRun.get(execution.run) ?? []), execution]);
  let overlapped = 0;
  for (const own of byRun.values()) {
    const [first] = own;
    if (own.length > 1 && first && own.some((one) => one !== first && (first.endMs ?? 0) > one.startMs)) overlapped++;
  }
  return {
    runs: dump.run.length + dump.run_history.length,
    executions: executions.length,
    slots: dump.slot.length,
    operations: operations.length,
    overlapped,
  };
}
