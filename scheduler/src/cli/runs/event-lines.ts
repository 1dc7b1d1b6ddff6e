import { errorCodes } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { RunNotice } from "../../run/handler.ts";
import type { Zone } from "../../schedule/zone.ts";
import type { Style } from "../screen/style.ts";
import { cut, pad, plain } from "../screen/text.ts";
import { clockText, spanText } from "../screen/times.ts";

/** The end of an attempt as printed in one line, made from a stored run or from an event of this process. */
export interface RunEnd {
  runId: number;
  task: string;
  attempt: number;
  dueMs: number;
  startedMs: number | null;
  endedMs: number | null;
  outcome: "succeeded" | "failed" | "cancelled" | "skipped" | "retry" | "snoozed";
  error: string | null;
}

/** Task names are padded to this width, so that the columns after them are aligned unless a name is longer. */
const usualTaskWidth = 20;

/** Formats one line: `14:03:20.001  heartbeat            run 42  ✓ 3 ms   (1 ms late)`. */
export function endLine(end: RunEnd, zone: Zone, style: Style, taskWidth = usualTaskWidth): string {
  const at = end.startedMs ?? end.endedMs ?? end.dueMs;
  const task = plain(end.task);
  const head = `${style.dim(clockText(at, zone))}  ${pad(cut(task, 40), taskWidth)}  ${pad(`run ${end.runId}`, 8)}`;
  return `${head}  ${outcomeText(end, style)}`;
}

function outcomeText(end: RunEnd, style: Style): string {
  const took = end.startedMs === null || end.endedMs === null ? "" : spanText(Math.max(0, end.endedMs - end.startedMs));
  const late = end.startedMs === null || end.attempt > 1 ? "" : lateText(Math.floor(end.startedMs) - end.dueMs, style);
  const why = end.error === null ? "" : plain(end.error);
  const attempt = end.attempt > 1 ? `attempt ${end.attempt}` : "";
  const words = (...parts: string[]) => parts.filter((part) => part !== "").join("  ");
  switch (end.outcome) {
    case "succeeded":
      return words(`${style.good(`✓ ${took}`)} `, attempt, late);
    case "retry":
      return words(style.warning(`↻ ${took}`), `attempt ${end.attempt} failed, tries again:`, style.warning(why));
    case "failed":
      return words(style.bad(`✗ ${took}`), attempt, style.bad(why), late);
    case "cancelled":
      return words(style.warning("⊘ cancelled"), style.dim(why));
    case "skipped":
      return words(style.dim("↷ skipped"), style.dim(why));
    case "snoozed":
      return words(style.dim(`↷ ${took}`), `attempt ${end.attempt} put it off`);
  }
}

export function lateText(ms: number, style: Style): string {
  const text = `(${spanText(Math.max(0, ms))} late)`;
  return ms >= 1_000 ? style.warning(text) : style.dim(text);
}

/**
 * The text of a stored error: its message, preceded by its code if that is a Carillon code other than CANCELLED; null if there is no
 * error.
 */
export function errorWords(error: Json | undefined): string | null {
  if (error === null || error === undefined) return null;
  if (typeof error !== "object" || Array.isArray(error)) return String(error);
  const { code, message } = error;
  const words = typeof message === "string" && message !== "" ? message : JSON.stringify(error);
  return typeof code === "string" && code in errorCodes && code !== "CANCELLED" ? `${code}: ${words}` : words;
}

/** Converts a run event to a printable end; null if the event reports a start. */
export function endOf(notice: RunNotice): RunEnd | null {
  if (notice.kind === "started") return null;
  const outcome = notice.kind === "ended" ? (notice.outcome ?? "succeeded") : notice.kind;
  const { runId, task, attempt, dueMs, startedMs, endedMs, error } = notice;
  return { runId, task, attempt, dueMs, startedMs, endedMs, outcome, error: noticeWords(error) };
}

/** Returns the text of an event's error, given as the JSON text that is stored; null if there is no error. */
export const noticeWords = (error: string | null) => (error === null ? null : errorWords(JSON.parse(error) as Json));
