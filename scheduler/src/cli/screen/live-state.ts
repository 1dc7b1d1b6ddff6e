import type { RunNotice } from "../../run/handler.ts";
import { latenessMs } from "../../run/handling/lateness.ts";
import type { Zone } from "../../schedule/zone.ts";
import { endLine, endOf, type RunEnd } from "../runs/event-lines.ts";
import type { Style } from "./style.ts";
import { cutStyled, styledWidth } from "./styled-text.ts";
import { cut, pad, plain, widthOf, wrap } from "./text.ts";
import { briefText, spanText } from "./times.ts";

export interface UpcomingFire {
  atMs: number;
  task: string;
  words: string;
}

export interface Counts {
  started: number;
  succeeded: number;
  failed: number;
  cancelled: number;
  retried: number;
}

const keptEnds = 200;
const keptLateness = 1_000;

/** Data for the live view, collected from run events, so that drawing the view needs no queries. */
export class LiveState {
  readonly counts: Counts = { started: 0, succeeded: 0, failed: 0, cancelled: 0, retried: 0 };
  readonly running = new Map<string, RunNotice>();
  readonly #ends: RunEnd[] = [];
  readonly #lateness: number[] = [];
  #latest = 0;

  observe(notice: RunNotice): RunEnd | null {
    const key = `${notice.runId}/${notice.attempt}`;
    if (notice.kind === "started") {
      this.counts.started += 1;
      this.running.set(key, notice);
      if (notice.attempt === 1) this.#late(latenessMs(notice, notice.startedMs));
      return null;
    }
    this.running.delete(key);
    if (notice.kind === "retry") this.counts.retried += 1;
    else if (notice.kind === "ended") this.counts[notice.outcome ?? "succeeded"] += 1;
    const end = endOf(notice) as RunEnd;
    this.#ends.push(end);
    if (this.#ends.length > 2 * keptEnds) this.#ends.splice(0, keptEnds);
    return end;
  }

  #late(ms: number): void {
    if (this.#lateness.length < keptLateness) this.#lateness.push(ms);
    else this.#lateness[this.#latest++ % keptLateness] = ms;
  }

  /** Percentiles of the lateness of the latest starts of first attempts, in ms; null if no first attempt has started yet. */
  lateness(): { p50: number; p99: number; max: number } | null {
    if (this.#lateness.length === 0) return null;
    const sorted = [...this.#lateness].sort((a, b) => a - b);
    const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] as number;
    return { p50: at(0.5), p99: at(0.99), max: at(1) };
  }

  last(count: number): RunEnd[] {
    return count <= 0 ? [] : this.#ends.slice(-count);
  }

  countsText(style: Style): string {
    const { succeeded, failed, cancelled, retried } = this.counts;
    const parts = [
      `${succeeded + failed + cancelled} runs`,
      style.good(`✓ ${succeeded}`),
      failed > 0 ? style.bad(`✗ ${failed}`) : style.dim("✗ 0"),
      ...(retried > 0 ? [style.warning(`↻ ${retried}`)] : []),
      ...(cancelled > 0 ? [`⊘ ${cancelled}`] : []),
    ];
    return parts.join("   ");
  }
}

export interface Frame {
  header: string[];
  upcoming: UpcomingFire[];
  nowMs: number;
  upMs: number;
  phase: "running" | "stopping" | "stopped";
  /** The size of the terminal, in columns and lines. */
  width: number;
  height: number;
  zone: Zone;
  style: Style;
}

const label = (text: string, style: Style) => style.dim(pad(text, 9));

/** Below this width in columns, the list of ended runs has no label beside it and task names are cut shorter. */
const roomyWidth = 80;

/** Draws the view: at most `height` lines, none wider than `width` columns. */
export function frameLines(state: LiveState, frame: Frame): string[] {
  const { width, height, style, zone, nowMs } = frame;
  const lines: string[] = headerLines(frame.header, width, style);
  const room = Math.max(0, height - lines.length - 1);
  const next = upcomingLines(frame.upcoming.slice(0, Math.max(1, Math.min(5, Math.floor(room / 4)))), frame);
  const running = runningLines(state, nowMs, Math.max(1, Math.min(3, Math.floor(room / 6))), width, style);
  const last = state.last(Math.max(0, Math.min(12, room - next.length - running.length)));
  const roomy = width >= roomyWidth;
  const taskWidth = Math.max(8, ...last.map(({ task }) => Math.min(roomy ? 40 : 16, widthOf(plain(task)))));
  const ends = last.map((end) => endLine(end, zone, style, taskWidth));
  const labels = (at: number) => (roomy ? label(at === 0 ? "last" : "", style) : "");
  lines.push(...next, ...running, ...ends.map((line, at) => `  ${labels(at)}${line}`));
  lines.push(`  ${footer(state, frame)}`);
  return lines.slice(0, Math.max(1, height)).map((line) => cutStyled(line, width));
}

function headerLines(parts: string[], width: number, style: Style): string[] {
  const [name = "", ...rest] = parts;
  const one = [name, ...rest].join("   ");
  if (widthOf(one) <= width) return [[style.title(name), ...rest].join("   ")];
  return [style.title(cut(name, width)), ...rest.flatMap((part) => wrap(part, width - 2).map((line) => `  ${line}`))];
}

export function upcomingLines(
  fires: UpcomingFire[],
  { nowMs, zone, style }: Pick<Frame, "nowMs" | "zone" | "style">,
): string[] {
  if (fires.length === 0) return [`  ${label("next", style)}${style.dim("nothing planned")}`];
  const times = fires.map(({ atMs }) => briefText(atMs, nowMs, zone));
  const timeWidth = Math.max(...times.map(widthOf));
  const taskWidth = Math.max(8, ...fires.map(({ task }) => Math.min(40, widthOf(plain(task)))));
  return fires.map(
    ({ task, words }, at) =>
      `  ${label(at === 0 ? "next" : "", style)}${pad(times[at] as string, timeWidth)}  ${pad(cut(plain(task), 40), taskWidth)}  ${style.dim(plain(words))}`,
  );
}

function runningLines(state: LiveState, nowMs: number, most: number, width: number, style: Style): string[] {
  const running = [...state.running.values()];
  if (running.length === 0) return [];
  const texts = running
    .slice(0, 20)
    .map(({ task, runId, startedMs }) => `${plain(task)} run ${runId} ${spanText(Math.max(0, nowMs - startedMs))}`);
  const all = `${running.length}: ${texts.join(", ")}${running.length > texts.length ? ", …" : ""}`;
  const lines = wrap(all, Math.max(10, width - 11));
  return lines.slice(0, most).map((line, at) => `  ${label(at === 0 ? "running" : "", style)}${style.accent(line)}`);
}

function footer(state: LiveState, { style, upMs, phase, width }: Frame): string {
  const late = state.lateness();
  const parts = [state.countsText(style)];
  if (phase === "stopping") parts.unshift(style.warning("stopping: waiting for what runs (Ctrl-C: at once)"));
  if (phase === "stopped") parts.unshift(`stopped after ${spanText(upMs)}`);
  if (phase === "running") {
    if (late !== null) parts.push(style.dim(`late p50 ${spanText(late.p50)}, max ${spanText(late.max)}`));
    parts.push(style.dim(`up ${spanText(upMs)}`), style.dim("Ctrl-C ends"));
  }
  // Parts that do not fit are dropped whole, from the end of the list, where the least important parts are.
  while (parts.length > 1 && styledWidth(parts.join("   ")) > width - 2) parts.pop();
  return parts.join("   ");
}
