import type { Zone } from "../../schedule/zone.ts";
import { errorWords } from "../runs/event-lines.ts";
import { statePaint, stateText } from "../runs/run-text.ts";
import type { Style } from "./style.ts";
import { cutStyled, styledWidth } from "./styled-text.ts";
import { type Cell, type Column, tableLines } from "./table.ts";
import { plain } from "./text.ts";
import { ageText, briefText, clockText, spanText } from "./times.ts";
import {
  countText,
  lateMs,
  latenessOf,
  type SortKey,
  silentOf,
  sortKeys,
  type TopState,
  taskRows,
  troublesOf,
} from "./top-state.ts";

export interface TopView {
  width: number;
  height: number;
  style: Style;
  zone: Zone;
  sort: SortKey;
  paused: boolean;
  /** The number of tasks above the first visible row: the scroll position. */
  from: number;
  /** The current cluster time; the clock advances between two reads of the cluster. */
  nowMs: number;
  everyMs: number;
  /** The time since which the cluster has been unreachable, and the reason; null while it is reachable. */
  away: { sinceMs: number; why: string } | null;
}

/** From this width in columns on, runs and workers are drawn beside the tasks instead of below the tasks. */
const wideColumns = 130;
/** Below this width in columns, the footer shows the sort keys without their names. */
const spaciousColumns = 76;
const gap = 3;
const fewLines = 14;

/** Draws the whole screen: at most `height` lines, none wider than `width` columns. A pure function. */
export function topLines(state: TopState, view: TopView): string[] {
  const { width, height, style } = view;
  const head = headLines(state, view);
  const foot = footLine(view);
  const room = Math.max(0, height - head.length - 1);
  const body = room === 0 ? [] : width >= wideColumns ? wide(state, view, room) : narrow(state, view, room);
  const filled = [...head, ...body];
  while (filled.length < height - 1) filled.push("");
  return [...filled.slice(0, Math.max(0, height - 1)), style.dim(foot)]
    .slice(0, height)
    .map((line) => cutStyled(line, width));
}

function headLines(state: TopState, { style, zone, nowMs, away, paused, width }: TopView): string[] {
  const { place, leader, members, running, overdue, ended, letters } = state;
  const clock = clockText(nowMs, zone).slice(0, 8);
  const title = `${style.title("carillon top")}  ${plain(place)}`;
  const right = `${paused ? style.warning("paused  ") : ""}${clock}`;
  const room = Math.max(1, width - styledWidth(right) - 1);
  const shown = cutStyled(title, room);
  const first = `${shown}${" ".repeat(Math.max(1, width - styledWidth(shown) - styledWidth(right)))}${right}`;
  const troubles = troublesOf(state);
  const verdict = away
    ? style.bad(`cannot be asked since ${clockText(away.sinceMs, zone).slice(0, 8)}, trying again: ${plain(away.why)}`)
    : troubles.length === 0
      ? style.good("● on time")
      : troubles
          .map(({ text, bad }, at) => (bad ? style.bad : style.warning)(`${at === 0 ? "● " : ""}${text}`))
          .join(style.dim("; "));
  const late = latenessOf(ended);
  const failed = ended.filter(({ state: end }) => end === "failed").length;
  const lateText =
    late === null
      ? style.dim("no run started in the last minute")
      : `late p50 ${spanText(late.p50)}  p99 ${(late.p99 > lateMs ? style.warning : style.good)(spanText(late.p99))}  max ${spanText(late.max)}`;
  const figures = [
    lateText,
    `running ${countText(running.length)}`,
    (overdue.length > 0 ? style.bad : style.dim)(`overdue ${countText(overdue.length)}`),
    `${countText(ended.length)} ended in a minute`,
    (failed > 0 ? style.bad : style.dim)(`${failed} failed`),
    ...(letters > 0 ? [style.warning(`${letters} dead letters`)] : []),
  ];
  const nodes = members.filter(({ role }) => role === "node").length;
  const workers = members.filter(({ groups = [] }) => groups.length > 0).length;
  const silent = silentOf(state).length;
  const who = [
    leader
      ? `${style.good(plain(leader.node))} leads, term ${leader.term}, for ${spanText(Math.max(0, nowMs - leader.electedMs))}`
      : style.bad("nobody leads"),
    `nodes ${nodes}`,
    `workers ${workers}`,
    ...(silent > 0 ? [style.bad(`silent ${silent}`)] : []),
    style.dim(`tasks ${state.tasks.length}`),
  ];
  return [first, verdict, fitting(figures, width), fitting(who, width), ""];
}

/** Joins as many parts as fit into `width`; parts are dropped whole, from the end of the list, which holds the least important ones. */
function fitting(parts: string[], width: number): string {
  const kept = [...parts];
  while (kept.length > 1 && styledWidth(kept.join("   ")) > width) kept.pop();
  return kept.join("   ");
}

function footLine({ sort, width, paused }: TopView): string {
  const sorts = Object.entries(sortKeys).map(([key, name]) => {
    const shown = width < spaciousColumns ? key : `${key} ${name}`;
    return key === sort ? `[${shown}]` : shown;
  });
  return fitting(
    ["q quit", paused ? "p go on" : "p pause", `sort: ${sorts.join("  ")}`, "↑↓ scroll", "space look now"],
    width,
  );
}

/** Draws the tasks above the other parts. The other parts get at most half of the lines, and on a low screen none. */
function narrow(state: TopState, view: TopView, room: number): string[] {
  const parts = [runningLines, failingLines, memberLines]
    .map((lines) => lines(state, view, view.width))
    .filter((lines) => lines.length > 0);
  const beside = room < fewLines ? 0 : Math.floor(room / 2);
  const lower = shared(parts, beside);
  const upper = taskLines(state, view, view.width, room - lower.length - (lower.length > 0 ? 1 : 0));
  return lower.length === 0 ? upper : [...upper, "", ...lower];
}

function wide(state: TopState, view: TopView, room: number): string[] {
  const left = Math.floor((view.width - gap) * 0.55);
  const right = view.width - gap - left;
  const parts = [runningLines, failingLines, memberLines]
    .map((lines) => lines(state, view, right))
    .filter((lines) => lines.length > 0);
  const [a, b] = [taskLines(state, view, left, room), shared(parts, room)];
  return Array.from({ length: Math.max(a.length, b.length) }, (_, at) => {
    const line = a[at] ?? "";
    return `${line}${" ".repeat(Math.max(0, left - styledWidth(line)) + gap)}${b[at] ?? ""}`.trimEnd();
  });
}

/**
 * Puts the parts below each other with an empty line between them. Each part gets an equal share of the lines; lines that a
 * part leaves unused go to the parts after it. A part whose share is less than two lines is left out.
 */
function shared(parts: string[][], room: number): string[] {
  const lines: string[] = [];
  let left = parts.length;
  for (const part of parts) {
    const share = Math.floor((room - lines.length - (left - 1)) / left--);
    if (share < 2) continue;
    if (lines.length > 0) lines.push("");
    lines.push(
      ...(part.length <= share ? part : [...part.slice(0, share - 1), `  … and ${part.length - share + 1} more`]),
    );
  }
  return lines.slice(0, Math.max(0, room));
}

const table = (columns: Column[], rows: Cell[][], width: number, style: Style): string[] =>
  rows.length === 0 ? [] : tableLines(columns, rows, { width, style });

function taskLines(state: TopState, view: TopView, width: number, room: number): string[] {
  const { style, nowMs, zone, sort } = view;
  if (room < 2) return [];
  const rows = taskRows(state, sort);
  if (rows.length === 0) return [style.dim("no tasks yet")];
  const from = Math.max(0, Math.min(view.from, rows.length - 1));
  const shown = rows.slice(from, from + room - 1);
  const many = (count: number, paint: Style["good"]): Cell => (count === 0 ? "" : { text: String(count), paint });
  return table(
    [
      { title: sort === "a" ? "TASK ▾" : "TASK", least: 8 },
      { title: sort === "n" ? "NEXT ▾" : "NEXT" },
      { title: "AT", drop: 6 },
      { title: sort === "r" ? "RUN ▾" : "RUN", align: "right", drop: 3 },
      { title: "WAIT", align: "right", drop: 2 },
      { title: sort === "l" ? "LATE ▾" : "LATE", align: "right", drop: 1 },
      { title: "OK", align: "right", drop: 7 },
      { title: sort === "f" ? "FAILED ▾" : "FAILED", align: "right", drop: 4 },
      { title: "MISSED", align: "right", drop: 8 },
      { title: "", drop: 5 },
    ],
    shown.map((row): Cell[] => [
      plain(row.name),
      row.nextMs === null ? { text: "–", paint: style.dim } : row.nextMs <= nowMs ? "now" : ageText(row.nextMs, nowMs),
      row.nextMs === null ? "" : { text: briefText(row.nextMs, nowMs, zone), paint: style.dim },
      many(row.running, style.accent),
      many(row.overdue, style.bad),
      row.lateMs === null
        ? ""
        : { text: spanText(Math.max(0, row.lateMs)), paint: row.lateMs > lateMs ? style.warning : style.dim },
      many(row.succeeded, style.good),
      many(row.failed, style.bad),
      many(row.missed, style.warning),
      row.paused
        ? { text: "paused", paint: style.warning }
        : row.last === null
          ? ""
          : { text: stateText(row.last), paint: statePaint(row.last, style) },
    ]),
    width,
    style,
  );
}

function runningLines({ running, overdue }: TopState, { style, nowMs }: TopView, width: number): string[] {
  const rows = [
    ...overdue.map((run): Cell[] => [
      { text: "overdue", paint: style.bad },
      plain(run.task),
      String(run.runId),
      { text: spanText(nowMs - run.dueMs), paint: style.bad },
      "",
    ]),
    ...[...running]
      .sort((a, b) => (a.startedMs ?? a.dueMs) - (b.startedMs ?? b.dueMs))
      .map((run): Cell[] => [
        { text: "running", paint: style.accent },
        plain(run.task),
        String(run.runId),
        spanText(Math.max(0, nowMs - (run.startedMs ?? run.dueMs))),
        plain(run.node ?? ""),
      ]),
  ];
  const columns: Column[] = [
    { title: "RUNS" },
    { title: "TASK", least: 8 },
    { title: "RUN", align: "right", drop: 1 },
    { title: "FOR", align: "right" },
    { title: "NODE", least: 6, drop: 2 },
  ];
  return table(columns, rows, width, style);
}

function failingLines({ failing, ended }: TopState, { style, nowMs }: TopView, width: number): string[] {
  const rows = failing.map(({ letters, tasks, reason, lastMs }): Cell[] => [
    { text: String(letters), paint: style.bad },
    ageText(lastMs, nowMs),
    plain(tasks.join(", ")),
    { text: plain(reason), paint: style.bad },
  ]);
  // Without dead letters the latest failed run is shown: its dead letter may not be recorded yet, or may have been redriven already.
  const recent = ended.find(({ state }) => state === "failed");
  if (rows.length === 0 && recent)
    rows.push([
      "",
      ageText(recent.endedMs ?? nowMs, nowMs),
      plain(recent.task),
      { text: plain(errorWords(recent.error) ?? ""), paint: style.bad },
    ]);
  const columns: Column[] = [
    { title: "FAILING", align: "right" },
    { title: "LAST" },
    { title: "TASKS", least: 8 },
    { title: "REASON", least: 10, drop: 1 },
  ];
  return table(columns, rows, width, style);
}

function memberLines({ members, leader, running }: TopState, { style, nowMs }: TopView, width: number): string[] {
  const held = new Map<string, number>();
  for (const { node } of running) if (node !== null) held.set(node, (held.get(node) ?? 0) + 1);
  const rows = members.map(({ node, role, groups = [], capacity, seenMs, timeoutMs, sessionId, host }): Cell[] => {
    const silent = nowMs - seenMs > timeoutMs;
    const works = groups.length > 0;
    return [
      plain(node),
      leader?.sessionId === sessionId
        ? { text: "leads", paint: style.good }
        : role === "worker"
          ? "worker"
          : works
            ? "node, worker"
            : "node",
      works ? `${held.get(node) ?? 0}${capacity ? `/${capacity}` : ""}` : "",
      plain(groups.join(", ")),
      plain(host),
      silent
        ? { text: `silent for ${spanText(nowMs - seenMs)}`, paint: style.bad }
        : { text: "live", paint: style.dim },
    ];
  });
  const columns: Column[] = [
    { title: "NODES", least: 8 },
    { title: "" },
    { title: "RUNS", align: "right" },
    { title: "GROUPS", least: 6, drop: 2 },
    { title: "HOST", least: 6, drop: 3 },
    { title: "", drop: 1 },
  ];
  return table(columns, rows, width, style);
}
