import { attemptObject, lateObject, relativeObject, runObject } from "../../api/run-json.ts";
import { isCarillonError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import { type Overrides, writtenOverrides } from "../../run/enqueue-options.ts";
import { readyMsOf } from "../../run/handling/lateness.ts";
import type { AttemptRecord, LogLine, RunRecord } from "../../run/run-record.ts";
import { compileSchedule, type ScheduleSpec } from "../../schedule/schedule.ts";
import type { Zone } from "../../schedule/zone.ts";
import { encodedText, storedKey } from "../../task/kinds/encoded.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import type { Cluster } from "../nodes/cluster.ts";
import { withCluster } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import { cut, pad, plain, plainLines } from "../screen/text.ts";
import { ageText, clockText, localZone, spanText, timeText, zoneOfSpec } from "../screen/times.ts";
import type { CommonOptions } from "../store-choice.ts";
import { directionText } from "../tasks/policy-text.ts";
import { printLateResults, printRelatives } from "./run-relatives.ts";
import { statePaint, stateText } from "./run-text.ts";
import { barsOf, waterfallLines } from "./waterfall.ts";

export function showRun(
  runId: number,
  options: CommonOptions & { logs: number },
  terminal: Terminal,
): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    const { run, attempts, letter, redrives, relatives, late } = await cluster.runs.card(runId);
    const logs = await cluster.runs.logs(runId, options.logs);
    if (terminal.json) {
      terminal.object({
        ...runObject(run),
        deadLetter: letter && { state: letter.state, fingerprint: letter.fingerprint, redrivenBy: letter.redrivenBy },
        redrives,
        attempts: attempts.map(attemptObject),
        flow: relatives.map(relativeObject),
        late: late.map(lateObject),
        logs: logs.map(({ atMs, runId: _, ...line }) => ({ at: new Date(atMs).toISOString(), ...line })),
      });
      return exitCodes.ok;
    }
    const schedule = await scheduleOf(cluster, run.task);
    const zone = schedule === undefined ? localZone() : zoneOfSpec(schedule);
    printRun(
      run,
      attempts,
      { zone, now: cluster.nowMs(), words: schedule ? compileSchedule(schedule).words() : "" },
      terminal,
    );
    printRelatives(relatives, terminal);
    printLateResults(late, zone, terminal);
    printLogs(logs, options.logs, zone, terminal);
    if (redrives !== null) terminal.line(`  redrives run ${redrives}`);
    if (letter)
      terminal.line(
        `  dead letter ${letter.fingerprint}, ${letter.state}${letter.redrivenBy === null ? "" : ` as run ${letter.redrivenBy}`}`,
      );
    return exitCodes.ok;
  });
}

/** The schedule of the run's task; undefined if the task was removed: its runs remain in the history. */
async function scheduleOf(cluster: Cluster, task: string): Promise<ScheduleSpec | undefined> {
  try {
    return (await cluster.tasks.find(task)).record.definition.schedule;
  } catch (error) {
    if (isCarillonError(error, "TASK_UNKNOWN")) return undefined;
    throw error;
  }
}

const sourceWords: Record<Exclude<RunRecord["source"], "slot">, string> = {
  enqueue: "enqueued",
  manual: "run by hand",
  child: "spawned by a run",
  after: "after another task",
  chain: "goes on from a run",
  join: "joins a run's children",
};

interface Surroundings {
  zone: Zone;
  now: number;
  words: string;
}

function printRun(
  run: RunRecord,
  attempts: AttemptRecord[],
  { zone, now, words }: Surroundings,
  terminal: Terminal,
): void {
  const { style } = terminal;
  const width = Math.min(terminal.width, 120);
  const row = (name: string, text: string, note = "") => {
    const noted = note === "" ? text : `${pad(text, 30)}  ${note}`;
    terminal.line(`  ${style.dim(pad(name, 9))} ${width < 120 ? cut(noted, width - 12) : noted}`);
  };
  terminal.line(
    `${style.title(`run ${run.runId}`)}  ${plain(run.task)}  ${statePaint(run.state, style)(stateText(run.state))}`,
  );
  terminal.line();
  const asked = run.source === "slot" ? plain(words) : sourceWords[run.source];
  row("source", run.key === null ? asked : `${asked}, key ${plain(run.key)}`);
  if (run.slotMs !== null) row("slot", timeText(run.slotMs, zone));
  row("created", timeText(run.createdMs, zone), ageText(run.createdMs, now));
  row("due", timeText(run.dueMs, zone), ageText(run.dueMs, now));
  if (run.claimedMs !== null) {
    const by = `by ${plain(run.node ?? "a process since forgotten")}, fence ${run.fence}`;
    row("claimed", timeText(run.claimedMs, zone), `${relativeToDue(run.claimedMs - run.dueMs)}, ${by}`);
  }
  if (run.startedMs !== null) {
    const ownMs = readyMsOf(run) - run.dueMs;
    const own = ownMs > 0 ? `, ${spanText(ownMs)} of it for its own limit or a pause` : "";
    const after = `${spanText(Math.max(0, run.startedMs - run.dueMs))} after it was due`;
    row("started", timeText(run.startedMs, zone), after + own);
  }
  if (run.endedMs !== null) {
    row(
      "ended",
      timeText(run.endedMs, zone),
      run.startedMs === null ? "never started" : `took ${spanText(run.endedMs - run.startedMs)}`,
    );
  }
  if (run.attempt > 1) row("attempts", String(run.attempt));
  row("priority", String(run.priority));
  if (run.overrides) row("policies", plain(overridesText(run.overrides)), "its own, in place of the task's");
  if (run.expiresMs != null) row("expires", timeText(run.expiresMs, zone), ageText(run.expiresMs, now));
  const labels = Object.entries(run.labels ?? {}).map(([name, value]) => `${name}=${value}`);
  if (labels.length > 0) row("labels", plain(labels.join(", ")));
  if (directionText(run) !== "") row("route", plain(directionText(run)));
  const bars = barsOf(run, attempts);
  if (bars.length > 0) {
    terminal.line();
    for (const line of waterfallLines(run, bars, now, Math.min(width, 110), style)) terminal.line(line);
    terminal.line(style.dim(cut("          · due, not claimed   ░ claimed   █ running", width)));
  }
  printJson("payload", run.payload, terminal);
  printJson("progress", run.progress, terminal);
  printJson("result", run.result, terminal);
  printError(run.error, terminal);
}

const overridesText = (overrides: Overrides) =>
  Object.entries(writtenOverrides(overrides))
    .map(([option, value]) => `${option} ${JSON.stringify(value)}`)
    .join(", ");

const relativeToDue = (ms: number) =>
  ms < 0 ? `${spanText(-ms)} before it was due` : `${spanText(ms)} after it was due`;

function printJson(name: string, value: Json, terminal: Terminal): void {
  if (value === null) return;
  const key = storedKey(value);
  if (key !== undefined) {
    terminal.line();
    terminal.line(`${terminal.style.dim(name)}  kept outside the store: ${plain(key)}`);
    return;
  }
  const encoded = encodedText(value);
  if (encoded !== undefined) {
    terminal.line();
    terminal.line(`${terminal.style.dim(name)}  encrypted, ${encoded.length} characters`);
    return;
  }
  terminal.line();
  terminal.line(terminal.style.dim(name));
  for (const line of plainLines(JSON.stringify(value, null, 2))) terminal.line(`  ${line}`);
}

function printError(error: Json, terminal: Terminal): void {
  if (error === null) return;
  const { style } = terminal;
  const { message, stack, code } = (
    typeof error === "object" && !Array.isArray(error) ? error : { message: String(error) }
  ) as Record<string, Json>;
  terminal.line();
  terminal.line(style.dim("error"));
  // The stack comes from the user's code and already begins with the message.
  const text = typeof stack === "string" ? stack : `${typeof code === "string" ? `${code}: ` : ""}${message}`;
  for (const line of plainLines(text)) terminal.line(`  ${style.bad(line)}`);
}

function printLogs(logs: LogLine[], most: number, zone: Zone, terminal: Terminal): void {
  if (logs.length === 0) return;
  const { style } = terminal;
  terminal.line();
  terminal.line(style.dim("log"));
  const attempts = new Set(logs.map(({ attempt }) => attempt)).size;
  for (const { atMs, attempt, level, message, fields } of logs) {
    const paint = { debug: style.dim, info: (text: string) => text, warn: style.warning, error: style.bad }[level];
    const tries = attempts > 1 ? `try ${attempt}  ` : "";
    const more = fields === null ? "" : `  ${style.dim(plain(JSON.stringify(fields)))}`;
    terminal.line(`  ${style.dim(clockText(atMs, zone))}  ${tries}${paint(pad(level, 5))}  ${plain(message)}${more}`);
  }
  if (logs.length === most) terminal.line(style.dim(`  the first ${most} lines; more with --logs N`));
}
