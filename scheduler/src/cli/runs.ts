import { pause, systemClock } from "../clock.ts";
import { parseDuration } from "../duration.ts";
import { CarillonError, isCarillonError } from "../errors.ts";
import { liveStates, outcomes } from "../run.ts";
import { runObject } from "../run-object.ts";
import type { RunFilter, RunRecord, Store } from "../store.ts";
import { endLine, errorWords } from "./event-lines.ts";
import { type ExitCode, exitCodes } from "./exit-codes.ts";
import { endOfRun, statePaint, stateText } from "./run-text.ts";
import { type CommonOptions, type Opened, operator, withStore } from "./store-choice.ts";
import type { Terminal } from "./terminal.ts";
import { plain } from "./text.ts";
import { ageText, localZone, spanText } from "./times.ts";

export interface RunListOptions extends CommonOptions {
  task?: string;
  state?: RunRecord["state"][];
  since?: string;
  limit: number;
}

export const runStates = [...liveStates, ...outcomes];

export function listRuns(options: RunListOptions, terminal: Terminal): Promise<ExitCode> {
  const sinceAgoMs = options.since === undefined ? undefined : parseDuration(options.since, "--since");
  return withStore(options, async ({ store, nowMs, place }) => {
    if (options.task !== undefined) await store.tasks.byName(options.task);
    const now = Math.round(nowMs());
    const filter = {
      task: options.task,
      limit: options.limit,
      ...(sinceAgoMs === undefined ? {} : { sinceMs: now - sinceAgoMs }),
    };
    const runs = options.state
      ? await store.runs.list({ ...filter, states: options.state })
      : await worthSeeing(store, filter, now);
    if (terminal.json) terminal.object(runs.map(runObject));
    else if (runs.length === 0)
      terminal.aside(`No runs to show in ${place}; those that wait for their time: --state ready.`);
    else showRuns(runs, now, terminal);
    return exitCodes.ok;
  });
}

/** Under way, waiting for a place or overdue, then ended, latest first. What waits for its own time is not news. */
async function worthSeeing(store: Store, filter: Omit<RunFilter, "states">, now: number): Promise<RunRecord[]> {
  const { task, limit } = filter;
  const waiting = await store.runs.list({ task, limit, states: ["ready"] });
  const live = await store.runs.list({ task, limit, states: ["undecided", "claimed", "held", "paused"] });
  const ended = await store.runs.list({ ...filter, states: [...outcomes] });
  const overdue = waiting.filter(({ dueMs }) => dueMs <= now);
  return [...live.filter(({ state, dueMs }) => state !== "claimed" || dueMs <= now), ...overdue, ...ended].slice(
    0,
    limit,
  );
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

/** A run that ended is stored a little after its end, so each look goes back by this much. */
const lookBackMs = 5_000;
const lookEveryMs = 300;
const endsPerLook = 5_000;

export function tailRuns(options: TailOptions, terminal: Terminal): Promise<ExitCode> {
  return withStore(options, async (opened) => {
    const { store, nowMs, signal } = opened;
    if (options.task !== undefined) await store.tasks.byName(options.task);
    const zone = localZone();
    const tell = (run: RunRecord) => {
      const end = endOfRun(run);
      if (terminal.json) process.stdout.write(`${JSON.stringify(runObject(run))}\n`);
      else if (end) terminal.line(endLine(end, zone, terminal.style));
    };
    const since = Math.round(nowMs());
    const last = await store.runs.list({ task: options.task, limit: options.limit, states: [...outcomes] });
    for (const run of last.reverse()) tell(run);
    if (!options.follow) return exitCodes.ok;
    const seen = new Map(last.map(({ runId, endedMs }) => [runId, endedMs ?? since]));
    let latest = since;
    let away = false;
    while (!signal.aborted) {
      await pause(systemClock, lookEveryMs, signal);
      if (signal.aborted) break;
      const runs = await look(opened, options.task, latest - lookBackMs);
      if (runs === undefined) {
        if (!away) terminal.aside("carillon: the store is away; trying again until it is back");
        away = true;
        continue;
      }
      if (away) terminal.aside("carillon: the store is back");
      away = false;
      if (runs.length === endsPerLook)
        terminal.aside(`carillon: more than ${endsPerLook} runs ended at once; some are left out`);
      for (const run of runs.reverse()) {
        if (seen.has(run.runId) || (run.endedMs ?? 0) < since - lookBackMs) continue;
        seen.set(run.runId, run.endedMs ?? latest);
        latest = Math.max(latest, run.endedMs ?? latest);
        tell(run);
      }
      for (const [runId, endedMs] of seen) if (endedMs < latest - 2 * lookBackMs) seen.delete(runId);
    }
    return exitCodes.ok;
  });
}

/** undefined while the store is away. */
async function look({ store }: Opened, task: string | undefined, sinceMs: number): Promise<RunRecord[] | undefined> {
  try {
    return await store.runs.list({ task, sinceMs, limit: endsPerLook, states: [...outcomes] });
  } catch (error) {
    if (isCarillonError(error, "STORE_UNREACHABLE")) return undefined;
    throw error;
  }
}

export function cancelRuns(
  ids: number[],
  options: CommonOptions & { reason?: string },
  terminal: Terminal,
): Promise<ExitCode> {
  return withStore(options, async ({ tower }) => {
    let worst: ExitCode = exitCodes.ok;
    for (const run of ids) {
      try {
        const outcome = await tower.cancel(run, options.reason, operator());
        if (terminal.json) terminal.object({ run, outcome });
        else
          terminal.line(
            outcome === "cancelled" ? `run ${run} is cancelled` : `run ${run} is running and was told to stop`,
          );
      } catch (error) {
        if (!(error instanceof CarillonError) || ids.length === 1) throw error;
        terminal.failure(error);
        worst = exitCodes.failed;
      }
    }
    return worst;
  });
}
