import { runObject, runSummaryObject } from "../../api/run-json.ts";
import { labelsOfPairs } from "../../api/run-labels.ts";
import { parseDuration } from "../../base/duration.ts";
import { CarillonError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import { checkNamespace } from "../../base/namespace.ts";
import { outcomes, type RunSource } from "../../run/run.ts";
import type { RunFilter, RunRecord } from "../../run/run-record.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import type { Cluster } from "../nodes/cluster.ts";
import { withCluster } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import { ageText, localZone, spanText } from "../screen/times.ts";
import type { CommonOptions } from "../store-choice.ts";
import { endLine, errorWords } from "./event-lines.ts";
import { endOfRun, statePaint, stateText } from "./run-text.ts";

export interface RunListOptions extends CommonOptions {
  task?: string;
  state?: RunRecord["state"][];
  since?: string;
  group?: string;
  namespace?: string;
  key?: string;
  source?: RunSource;
  label?: [string, string][];
  limit: number;
}

export function listRuns(options: RunListOptions, terminal: Terminal): Promise<ExitCode> {
  const sinceAgoMs = options.since === undefined ? undefined : parseDuration(options.since, "--since");
  const { task, group, key, source } = options;
  const labels = options.label && labelsOfPairs(options.label, "--label");
  const namespaces = options.namespace === undefined ? undefined : [checkNamespace(options.namespace)];
  return withCluster(options, async ({ cluster }) => {
    const now = Math.round(cluster.nowMs());
    const filter = {
      ...(task === undefined ? {} : { task }),
      ...(group === undefined ? {} : { group }),
      ...(namespaces === undefined ? {} : { namespaces }),
      ...(key === undefined ? {} : { key }),
      ...(source === undefined ? {} : { source }),
      ...(labels ? { labels } : {}),
      limit: options.limit,
      ...(sinceAgoMs === undefined ? {} : { sinceMs: now - sinceAgoMs }),
    };
    const runs = options.state
      ? await cluster.runs.list({ ...filter, states: options.state }, terminal.json)
      : await worthSeeing(cluster, filter, now, terminal.json);
    if (terminal.json) terminal.object(runs.map(runObject));
    else if (runs.length === 0)
      terminal.aside(`No runs to show in ${cluster.place}; those that wait for their time: --state ready.`);
    else showRuns(runs, now, terminal);
    return exitCodes.ok;
  });
}

/**
 * Lists held, paused, undecided, running and overdue runs, then ended runs, the latest first. Ready and claimed runs that are
 * not due yet are left out.
 */
async function worthSeeing(
  { runs }: Cluster,
  filter: Omit<RunFilter, "states">,
  now: number,
  whole: boolean,
): Promise<RunRecord[]> {
  const { sinceMs: _, ...anyTime } = filter;
  const waiting = await runs.list({ ...anyTime, states: ["ready"] }, whole);
  const live = await runs.list({ ...anyTime, states: ["undecided", "claimed", "held", "paused"] }, whole);
  const ended = await runs.list({ ...filter, states: [...outcomes] }, whole);
  // A run may change its state between the three reads; if several reads returned the run, the state of the latest read is shown.
  const later = new Set([...live, ...ended].map(({ runId }) => runId));
  const overdue = waiting.filter(({ runId, dueMs }) => dueMs <= now && !later.has(runId));
  const gone = new Set(ended.map(({ runId }) => runId));
  const under = live.filter(({ runId, state, dueMs }) => !gone.has(runId) && (state !== "claimed" || dueMs <= now));
  return [...under, ...overdue, ...ended].slice(0, filter.limit);
}

export function showRuns(runs: RunRecord[], now: number, terminal: Terminal): void {
  const { style } = terminal;
  terminal.table(
    [
      { title: "RUN", align: "right" },
      { title: "TASK", least: 8 },
      { title: "STATE" },
      { title: "DUE", drop: 1 },
      { title: "LATE", align: "right", drop: 3 },
      { title: "TOOK", align: "right", drop: 2 },
      { title: "TRY", align: "right", drop: 5 },
      { title: "NODE", drop: 6, least: 6 },
      { title: "ERROR", drop: 4, least: 12 },
    ],
    runs.map((run) => [
      String(run.runId),
      plain(run.task),
      { text: stateText(run.state), paint: statePaint(run.state, style) },
      ageText(run.dueMs, now),
      run.startedMs === null ? "" : spanText(Math.max(0, run.startedMs - run.dueMs)),
      run.startedMs === null ? "" : spanText(Math.max(0, (run.endedMs ?? now) - run.startedMs)),
      run.attempt > 1 ? String(run.attempt) : "",
      plain(run.addressee == null ? (run.node ?? "") : `→ ${run.addressee}`),
      { text: plain(errorWords(run.error) ?? ""), paint: style.bad },
    ]),
  );
}

export interface TailOptions extends CommonOptions {
  task?: string;
  follow?: boolean;
  limit: number;
}

/** Reduces an error to its code and message for lists, because stacks would be most of the output. */
const briefError = (error: Json): Json => {
  if (typeof error !== "object" || error === null || Array.isArray(error)) return error;
  const { code, message } = error;
  return { ...(code === undefined ? {} : { code }), ...(message === undefined ? {} : { message }) };
};

/**
 * Prints the last `limit` ends of runs, oldest first. With `follow`, it then prints further ends when they happen, and continues after
 * the cluster was unreachable; if too many runs end at once, some are left out.
 */
export function tailRuns(options: TailOptions, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, async ({ cluster: { by, runs }, signal }) => {
    const { task, limit } = options;
    const zone = localZone();
    const ended = (run: RunRecord) => {
      const end = endOfRun(run);
      if (terminal.json)
        process.stdout.write(`${JSON.stringify({ ...runSummaryObject(run), error: briefError(run.error) })}\n`);
      else if (end) terminal.line(endLine(end, zone, terminal.style));
    };
    // Lists the runs even if `limit` is 0, because the list call rejects an unknown task.
    const filter = { ...(task === undefined ? {} : { task }), limit: Math.max(1, limit), states: [...outcomes] };
    const last = (await runs.list(filter)).slice(0, limit);
    for (const run of last.reverse()) ended(run);
    if (!options.follow) return exitCodes.ok;
    const listener = {
      ended,
      away: () => terminal.aside(`carillon: the ${by} is away; trying again until it is back`),
      back: () => terminal.aside(`carillon: the ${by} is back`),
      left: () => terminal.aside("carillon: too many runs ended at once; some are left out"),
    };
    await runs.follow(task, last, listener, signal);
    return exitCodes.ok;
  });
}

export function cancelRuns(
  ids: number[],
  options: CommonOptions & { reason?: string },
  terminal: Terminal,
): Promise<ExitCode> {
  return withEach(ids, options, terminal, async ({ runs }, run) => {
    const outcome = await runs.cancel(run, options.reason);
    if (!terminal.json)
      terminal.line(outcome === "cancelled" ? `run ${run} is cancelled` : `run ${run} is running and was told to stop`);
    return { run, outcome };
  });
}

export function rerunRuns(
  ids: number[],
  options: CommonOptions & { reason?: string },
  terminal: Terminal,
): Promise<ExitCode> {
  return withEach(ids, options, terminal, async ({ runs }, run) => {
    const { runId, created } = await runs.rerun(run, options.reason ?? "");
    if (!terminal.json)
      terminal.line(created ? `run ${run} runs again as ${runId}` : `run ${runId} has its key, and did not end yet`);
    return { run, again: runId, created };
  });
}

/** Calls the function for each run. If several runs are given, a `CarillonError` with one of them does not prevent the others. */
function withEach(
  ids: number[],
  options: CommonOptions,
  terminal: Terminal,
  act: (cluster: Cluster, run: number) => Promise<object>,
): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    let worst: ExitCode = exitCodes.ok;
    const done: object[] = [];
    for (const run of ids) {
      try {
        done.push(await act(cluster, run));
      } catch (error) {
        if (!(error instanceof CarillonError) || ids.length === 1) throw error;
        terminal.failure(error);
        worst = exitCodes.failed;
      }
    }
    if (terminal.json) terminal.objects(done, ids.length);
    return worst;
  });
}
