import type { AttemptRecord, RunRecord } from "../../run/run-record.ts";
import type { Style } from "../screen/style.ts";
import { cut, pad, plain } from "../screen/text.ts";
import { spanText } from "../screen/times.ts";
import { errorWords } from "./event-lines.ts";

/** One attempt of a run, drawn on the time scale that all attempts share. A null time is unknown or has not been reached. */
export interface Bar {
  attempt: number;
  claimedMs: number | null;
  startedMs: number | null;
  endedMs: number | null;
  outcome: string;
  error: string | null;
}

/** Returns the run's earlier attempts, then the attempt that ended the run or is in progress. */
export function barsOf(run: RunRecord, attempts: AttemptRecord[]): Bar[] {
  const bars: Bar[] = attempts
    .filter(({ attempt }) => attempt < run.attempt || run.claimedMs === null)
    .map(({ attempt, claimedMs, startedMs, endedMs, outcome, error }) => ({
      attempt,
      claimedMs,
      startedMs,
      endedMs,
      outcome,
      error: errorWords(error),
    }));
  if (run.claimedMs !== null) {
    const { attempt, claimedMs, startedMs, endedMs, state, error } = run;
    bars.push({ attempt, claimedMs, startedMs, endedMs, outcome: state, error: errorWords(error) });
  }
  return bars;
}

/**
 * Draws one line per attempt: `·` while the first attempt was due and unclaimed, `░` while an attempt was claimed and not started, `█`
 * while it ran.
 */
export function waterfallLines(run: RunRecord, bars: Bar[], nowMs: number, width: number, style: Style): string[] {
  if (bars.length === 0) return [];
  const times = bars.flatMap(({ claimedMs, startedMs, endedMs }) => [claimedMs, startedMs, endedMs ?? nowMs]);
  const known = [run.dueMs, ...times].filter((ms) => ms !== null);
  const from = Math.min(...known);
  const to = Math.max(...known, from + 1);
  const columns = Math.max(10, Math.min(60, width - 34));
  const place = (ms: number) => Math.round(((ms - from) / (to - from)) * columns);
  return bars.map((bar, at) => {
    const cells = Array<string>(columns).fill(" ");
    const fill = (fromMs: number, toMs: number, sign: string, least: number) => {
      const first = Math.min(place(fromMs), columns - 1);
      for (let i = first; i < Math.max(place(toMs), first + least) && i < columns; i++) cells[i] = sign;
    };
    const endMs = bar.endedMs ?? nowMs;
    if (at === 0 && bar.claimedMs !== null && bar.claimedMs > run.dueMs) fill(run.dueMs, bar.claimedMs, "·", 0);
    if (bar.claimedMs !== null) fill(bar.claimedMs, bar.startedMs ?? endMs, "░", 0);
    if (bar.startedMs !== null) fill(bar.startedMs, endMs, "█", 1);
    const paints: Record<string, Style["good"]> = { succeeded: style.good, claimed: style.accent, snoozed: style.dim };
    const paint = paints[bar.outcome] ?? style.bad;
    const took = bar.startedMs === null ? "" : spanText(Math.max(0, endMs - bar.startedMs));
    const why = bar.error === null || bar.error === "" ? bar.outcome : `${bar.outcome}: ${bar.error}`;
    const room = Math.max(8, width - columns - 24);
    return `  try ${pad(String(bar.attempt), 3)} ${paint(cells.join(""))}  ${pad(took, 10)}  ${cut(plain(why), room)}`.trimEnd();
  });
}
