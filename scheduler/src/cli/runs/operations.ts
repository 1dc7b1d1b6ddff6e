import { randomUUID } from "node:crypto";
import { operationObject } from "../../api/operation-json.ts";
import { iso } from "../../api/run-json.ts";
import { labelsOfPairs } from "../../api/run-labels.ts";
import { pause, systemClock } from "../../base/clock.ts";
import { parseDuration } from "../../base/duration.ts";
import { CarillonError } from "../../base/errors.ts";
import type { OperationFilter, OperationKind, OperationRecord } from "../../run/operations.ts";
import type { RunRecord } from "../../run/run-record.ts";
import { at as parseTime } from "../../schedule/schedule.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import type { Bulk } from "../nodes/cluster.ts";
import { askToGoOn, isWatched } from "../question.ts";
import { type Reached, withCluster } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import { ageText, spanText } from "../screen/times.ts";
import type { CommonOptions } from "../store-choice.ts";

/** Options of commands that act on many runs or tasks at once. */
export interface BulkOptions extends CommonOptions {
  task?: string;
  matching?: string;
  group?: string;
  fingerprint?: string;
  label?: [string, string][];
  state?: RunRecord["state"][];
  since?: string;
  until?: string;
  all?: boolean;
  dryRun?: boolean;
  yes?: boolean;
  wait?: boolean;
  reason?: string;
}

/** The highest number of runs or tasks that an operation may change without confirmation. */
const runsUnasked = 1_000;
const tasksUnasked = 20;
const shown = 10;
const lookMs = 200;

const past: Record<OperationKind, string> = {
  pause: "to pause",
  resume: "to resume",
  cancel: "to cancel",
  rerun: "to run again",
  redrive: "to redrive",
  dismiss: "to dismiss",
  backfill: "to run",
};

/** Parses a time with an offset, or a duration before `nowMs`; returns epoch ms. @throws USAGE, DURATION_INVALID */
export function timeOf(option: string, text: string, nowMs: number): number {
  if (/^[\d.\s]+(?:ms|[smhdw])/.test(text)) return Math.round(nowMs - parseDuration(text, option));
  return momentOf(
    option,
    text,
    "is neither a time with an offset nor a span",
    "For example 2027-03-27T00:00:00Z, 2027-03-27T00:00:00+01:00 or 2h.",
  );
}

/** Parses a time with an offset; returns epoch ms. @throws USAGE */
export const instantOf = (option: string, text: string): number =>
  momentOf(
    option,
    text,
    "is not a time with an offset or Z",
    "For example 2027-03-27T00:00:00Z or 2027-03-27T00:00:00+01:00.",
  );

function momentOf(option: string, text: string, wrong: string, hint: string): number {
  try {
    const spec = parseTime(text);
    return spec.type === "at" ? spec.atMs : 0;
  } catch (cause) {
    throw new CarillonError("USAGE", `${option} ${JSON.stringify(text)} ${wrong}`, { hint, cause });
  }
}

export function filterOf(options: BulkOptions, nowMs: number): OperationFilter {
  const { task, matching, group, fingerprint, label, state, since, until, all } = options;
  return {
    ...(task === undefined ? {} : { task }),
    ...(matching === undefined ? {} : { matching }),
    ...(group === undefined ? {} : { group }),
    ...(fingerprint === undefined ? {} : { fingerprint }),
    ...(label === undefined ? {} : { labels: labelsOfPairs(label, "--label") }),
    ...(state === undefined ? {} : { states: state }),
    ...(since === undefined ? {} : { sinceMs: timeOf("--since", since, nowMs) }),
    ...(until === undefined ? {} : { untilMs: timeOf("--until", until, nowMs) }),
    ...(all ? { all: true } : {}),
  };
}

/**
 * Prints the number of matching items and the first of them, asks for confirmation if there are many, and begins the operation. With
 * `dryRun`, only prints; with `yes`, does not ask.
 * @throws CONFIRMATION_NEEDED if the answer is no, or if no question can be asked: with --json or without a terminal
 */
export function beginOperation(
  kind: OperationKind,
  options: BulkOptions,
  terminal: Terminal,
  make: (nowMs: number) => Partial<Bulk> = () => ({}),
): Promise<ExitCode> {
  return withCluster(options, async (reached) => {
    const { cluster } = reached;
    const now = cluster.nowMs();
    const request = { kind, filter: filterOf(options, now), reason: options.reason ?? "", ...make(now) };
    const { total, first } = await cluster.operations.preview(request, shown);
    const isTasks = kind === "pause" || kind === "resume";
    const noun = isTasks ? (total === 1 ? "task" : "tasks") : total === 1 ? "run" : "runs";
    if (!terminal.json && (options.dryRun || total > 0)) {
      terminal.line(`${total} ${noun} ${past[kind]}${total > first.length ? ", the first of them:" : ""}`);
      for (const one of first) terminal.line(`  ${plain(one)}`);
    }
    if (options.dryRun) {
      if (terminal.json) terminal.object({ kind, total, first, dryRun: true });
      return exitCodes.ok;
    }
    if (total === 0) {
      if (terminal.json) terminal.object({ kind, total, operation: null });
      else terminal.aside("nothing matches, so there is nothing to do");
      return exitCodes.ok;
    }
    if (!options.yes && total > (isTasks ? tasksUnasked : runsUnasked)) {
      const answer = terminal.json || !isWatched() ? "no" : await askToGoOn(reached.signal);
      if (answer === "interrupted") {
        terminal.aside("nothing was done");
        return exitCodes.interrupted;
      }
      if (answer === "no")
        throw new CarillonError(
          "CONFIRMATION_NEEDED",
          `${total} ${noun} ${past[kind]}: so many are touched only when that is confirmed`,
          { hint: "Look at them with --dry-run, then say --yes." },
        );
    }
    const id = await cluster.operations.begin(request, randomUUID());
    if (options.wait) return follow(id, reached, terminal);
    if (terminal.json) {
      terminal.object({ kind, total, operation: id });
      return exitCodes.ok;
    }
    terminal.line(`operation ${id} has begun; see how it goes: carillon operations show ${id}`);
    const { leadership } = await cluster.members();
    if (leadership.sessionId === null)
      terminal.aside(
        `no node leads, so it waits until one does; carry it out from here: carillon operations wait ${id}`,
      );
    return exitCodes.ok;
  });
}

/** Pauses all tasks that match the filter. @param until the time at which the tasks are resumed automatically */
export function pauseByFilter(options: BulkOptions, until: string | undefined, terminal: Terminal): Promise<ExitCode> {
  const end = until === undefined ? {} : { pauseUntilMs: instantOf("--until", until) };
  return beginOperation("pause", options, terminal, () => end);
}

/** Waits until the operation has ended. With access to the store it also executes the steps, so that no node needs to run. */
async function follow(id: number, { cluster, signal }: Reached, terminal: Terminal): Promise<ExitCode> {
  let told = "";
  for (;;) {
    const { stepped, nextMs } = await cluster.operations.step(id);
    const operation = await cluster.operations.find(id);
    if (operation.endedMs !== null) {
      if (terminal.json) terminal.object(operationObject(operation));
      else terminal.line(`operation ${id} ${operation.state}: ${countsText(operation)}`);
      if (operation.error !== null) terminal.aside(plain(operation.error));
      return operation.state === "done" && operation.failed === 0 ? exitCodes.ok : exitCodes.failed;
    }
    if (signal.aborted) {
      terminal.aside(`operation ${id} goes on where a node leads; stop it with: carillon operations stop ${id}`);
      return exitCodes.interrupted;
    }
    const text = countsText(operation);
    if (process.stderr.isTTY && text !== told) terminal.aside(text);
    told = text;
    const waitMs = nextMs === null ? lookMs : Math.min(Math.max(nextMs - cluster.nowMs(), 10), lookMs);
    if (stepped === null) await pause(systemClock, waitMs, signal);
  }
}

/** For each kind of operation, the reason why items were skipped: the state in which the operation found them. */
const passedText: Record<OperationKind, string> = {
  pause: "paused already, or their pause would be over",
  resume: "at work already",
  cancel: "had ended before the cancel reached them",
  rerun: "were run again already",
  redrive: "were open no more",
  dismiss: "were open no more",
  backfill: "slots had a run already, or were left to the planner",
};

const countsText = ({ kind, total, done, passed, asked, late, failed }: OperationRecord): string =>
  [
    `${done} of ${total} done`,
    passed > 0 ? `${passed} ${passedText[kind]}` : "",
    asked > 0 ? `${asked} told to stop, and still running` : "",
    late > 0 ? `${late} told to stop too late: they ended otherwise` : "",
    failed > 0 ? `${failed} failed` : "",
  ]
    .filter((part) => part !== "")
    .join(", ");

function filterText({ filter, range, pauseUntilMs }: OperationRecord): string {
  const { task, matching, group, fingerprint, runId, states, sinceMs, untilMs, all } = filter;
  return [
    all ? "all" : "",
    task === undefined ? "" : `task ${task}`,
    matching === undefined ? "" : `matching ${matching}`,
    group === undefined ? "" : `group ${group}`,
    fingerprint === undefined ? "" : `fingerprint ${fingerprint}`,
    runId === undefined ? "" : `run ${runId}`,
    states === undefined ? "" : states.join(" or "),
    sinceMs === undefined ? "" : `since ${iso(sinceMs)}`,
    untilMs === undefined ? "" : `until ${iso(untilMs)}`,
    range === undefined ? "" : `from ${iso(range.fromMs)} to ${iso(range.toMs)}`,
    range?.perSecond ? `${range.perSecond} a second` : "",
    range?.reverse ? "newest first" : "",
    range?.missed ? "missed and skipped too" : "",
    pauseUntilMs === undefined ? "" : `paused until ${iso(pauseUntilMs)}`,
  ]
    .filter((part) => part !== "")
    .join(", ");
}

export function listOperations(options: CommonOptions & { limit: number }, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, async ({ cluster: { place, nowMs, ...cluster } }) => {
    const operations = await cluster.operations.list(options.limit);
    if (terminal.json) {
      terminal.object(operations.map(operationObject));
      return exitCodes.ok;
    }
    if (operations.length === 0) terminal.aside(`No operations in ${place} yet.`);
    else
      terminal.table(
        [
          { title: "OPERATION", align: "right" },
          { title: "KIND" },
          { title: "STATE" },
          { title: "DONE", align: "right" },
          { title: "FAILED", align: "right", drop: 2 },
          { title: "BEGAN", drop: 3 },
          { title: "BY", least: 8, drop: 1 },
          { title: "WHAT", least: 12 },
        ],
        operations.map((one) => [
          String(one.operationId),
          one.kind,
          one.state,
          `${one.done}/${one.total}`,
          one.failed > 0 ? { text: String(one.failed), paint: terminal.style.bad } : "",
          ageText(one.createdMs, nowMs()),
          plain(one.author),
          plain(filterText(one)),
        ]),
      );
    return exitCodes.ok;
  });
}

export function showOperation(id: number, options: CommonOptions, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    const operation = await cluster.operations.find(id);
    if (terminal.json) {
      terminal.object(operationObject(operation));
      return exitCodes.ok;
    }
    const { style } = terminal;
    const now = cluster.nowMs();
    const row = (name: string, text: string) => {
      if (text !== "") terminal.line(`  ${style.dim(name.padEnd(9))} ${plain(text)}`);
    };
    const { kind, state, author, reason, createdMs, startedMs, endedMs, error } = operation;
    terminal.line(`${style.title(`operation ${id}`)}  ${kind}  ${state}`);
    terminal.line();
    row("what", filterText(operation));
    row("progress", countsText(operation));
    row("by", author);
    row("why", reason);
    row("began", ageText(createdMs, now));
    if (endedMs !== null)
      row("ended", `${ageText(endedMs, now)}, took ${spanText(endedMs - (startedMs ?? createdMs))}`);
    row("error", error ?? "");
    return exitCodes.ok;
  });
}

export function stopOperation(id: number, options: CommonOptions, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    const state = await cluster.operations.stop(id);
    const operation = await cluster.operations.find(id);
    if (terminal.json) terminal.object(operationObject(operation));
    else terminal.line(`operation ${id} is ${state}; ${countsText(operation)}`);
    return exitCodes.ok;
  });
}

export function waitForOperation(id: number, options: CommonOptions, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, (reached) => follow(id, reached, terminal));
}

export interface BackfillOptions extends BulkOptions {
  from: string;
  to?: string;
  rate?: string;
  reverse?: boolean;
  missed?: boolean;
}

export function backfillTask(task: string, options: BackfillOptions, terminal: Terminal): Promise<ExitCode> {
  const perSecond = options.rate === undefined ? null : rateOf(options.rate);
  return beginOperation("backfill", { ...options, task }, terminal, (now) => ({
    filter: { task },
    range: {
      fromMs: timeOf("--from", options.from, now),
      toMs: options.to === undefined ? Math.floor(now) : timeOf("--to", options.to, now),
      perSecond,
      reverse: options.reverse ?? false,
      missed: options.missed ?? false,
    },
  }));
}

/** Converts "10/s", "100/m" or "5/10s" to runs per second. @throws USAGE, DURATION_INVALID */
export function rateOf(text: string): number {
  const [, count = "", span = ""] = /^(\d+)\/((?:\d+)?(?:ms|[smhd]))$/.exec(text.trim()) ?? [];
  if (count === "") {
    throw new CarillonError("USAGE", `--rate ${JSON.stringify(text)} is not a rate`, {
      hint: "For example 10/s, 100/m or 1/10s.",
    });
  }
  return (Number(count) * 1_000) / parseDuration(/^\d/.test(span) ? span : `1${span}`, "--rate");
}
