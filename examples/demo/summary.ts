/** The end of the demo: a table and some sentences for human readers, and flat figures for programs. */
import { nextSlots } from "carillon";
import type { Kill, Row, Verdict } from "./check.ts";
import { count, inWords, runsOf, type Screen, zonedTime } from "./screen.ts";
import { charge, type DebianTasks, machineZone, settlements } from "./tasks.ts";

export interface Facts {
  seconds: number;
  nodes: number;
  postgres: string;
  kill: Kill | undefined;
  /** The time from the kill until another node leads, in ms; null if none did. */
  takeoverMs: number | null;
}

export type Figures = Record<string, number | string | null>;

/** Returns the quantile by nearest rank; null without values. */
function quantile(sorted: number[], part: number): number | null {
  return sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)] ?? null;
}

const sum = ({ slots, delayed, byHand }: Verdict, name: keyof Row) => slots[name] + delayed[name] + byHand[name];

export function figuresOf(verdict: Verdict, { seconds, nodes, postgres, kill, takeoverMs }: Facts): Figures {
  const { slots, delayed, byHand, latenessMs, rerun } = verdict;
  return {
    seconds,
    nodes,
    slots_due: slots.due,
    fired: slots.fired,
    skipped: slots.skipped,
    missed: slots.missed,
    lost: sum(verdict, "lost"),
    doubled: sum(verdict, "doubled"),
    p50_ms: quantile(latenessMs, 0.5),
    p99_ms: quantile(latenessMs, 0.99),
    max_ms: quantile(latenessMs, 1),
    min_ms: quantile(latenessMs, 0),
    early: verdict.early,
    delayed_due: delayed.due,
    delayed_fired: delayed.fired,
    by_hand_due: byHand.due,
    by_hand_fired: byHand.fired,
    pending: verdict.pending,
    retried: verdict.retried,
    killed: kill ? 1 : 0,
    claimed_by_killed: kill?.claimed ?? 0,
    takeover_ms: takeoverMs,
    rerun_after_kill: rerun.count,
    rerun_started_before_kill: rerun.startedBefore,
    rerun_last_ms_after_kill: rerun.count > 0 ? rerun.lastAfterKillMs : null,
    rerun_p50_ms: quantile(rerun.latenessMs, 0.5),
    rerun_max_ms: quantile(rerun.latenessMs, 1),
    differences: verdict.differences.length,
    node_version: process.version,
    postgres_version: postgres,
  };
}

/** Returns true if nothing was lost, doubled or early, and the sources do not contradict each other. */
export function passed(verdict: Verdict): boolean {
  return sum(verdict, "lost") + sum(verdict, "doubled") + verdict.differences.length + verdict.early === 0;
}

export function summary(screen: Screen, verdict: Verdict, facts: Facts, debian: DebianTasks, nowMs: number): void {
  const { kill, seconds } = facts;
  screen.line();
  screen.line(`What came due in ${count(Math.round(seconds))} s, and what became of it`, "bold");
  const line = (cells: string[]) =>
    `  ${(cells[0] as string).padEnd(19)}${cells
      .slice(1)
      .map((cell) => cell.padStart(8))
      .join("")}`;
  screen.line(line(["", "due", "fired", "skipped", "missed", "lost", "doubled"]), "dim");
  for (const [name, row] of [
    ["slots of schedules", verdict.slots],
    ["delayed runs", verdict.delayed],
    ["runs by hand", verdict.byHand],
  ] as const) {
    const cells = [row.due, row.fired, row.skipped, row.missed, row.lost, row.doubled].map(count);
    screen.line(line([name, ...cells]), row.lost + row.doubled > 0 ? "red" : undefined);
  }
  screen.line();
  const [p50, p99, max] = [0.5, 0.99, 1].map((part) => count(quantile(verdict.latenessMs, part) ?? 0));
  const measured = `${count(verdict.latenessMs.length)} first starts after their time`;
  screen.prose(`${measured}: half within ${p50} ms, 99 of 100 within ${p99} ms, the last ${max} ms.`);
  if (verdict.early > 0) screen.prose(`✗ ${count(verdict.early)} started before their time.`, "  ", "red");
  killSentences(screen, verdict, facts);
  screen.prose(`Attempts of ${charge.name} that failed and were tried again: ${count(verdict.retried)}.`);
  if (verdict.differences.length === 0) {
    screen.prose(
      `The store's ledger (${count(verdict.ledgerSlots)} slots) and history (${runsOf(verdict.historyRuns)}) say the same as what was seen to start.`,
    );
  }
  for (const difference of verdict.differences.slice(0, 10)) screen.prose(`✗ ${difference}`, "  ", "red");
  if (verdict.differences.length > 10) screen.line(`✗ and ${verdict.differences.length - 10} more differences`, "red");
  if (passed(verdict)) {
    screen.prose(`✓ Nothing lost, nothing doubled${kill ? `, although ${kill.node} was killed` : ""}.`, "  ", "green");
  } else screen.prose("✗ Not everything is as promised: see above.", "  ", "red");
  upcoming(screen, debian, nowMs);
}

function killSentences(screen: Screen, { rerun, pending }: Verdict, { kill, takeoverMs }: Facts): void {
  if (!kill) return;
  const inSeconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;
  const takeover =
    takeoverMs === null
      ? ""
      : ` Another led ${inSeconds(takeoverMs)} later; slots are planned further ahead than that.`;
  screen.prose(
    `${kill.node} was killed with ${runsOf(kill.claimed)} claimed, ${count(kill.underWay)} of them under way.${takeover}`,
  );
  if (rerun.count > 0) {
    const late = quantile(rerun.latenessMs, 1);
    screen.prose(
      `${count(rerun.count)} of them ran elsewhere, the last ${inSeconds(rerun.lastAfterKillMs)} after the kill: ` +
        `${count(rerun.startedBefore)} for the second time, as they ask to be run again; ` +
        `${count(rerun.latenessMs.length)} for the first` +
        `${late === null ? "." : `, up to ${inSeconds(late)} late, which the line above leaves out.`}`,
    );
  }
  const doubt = `it was not yet certain that ${kill.node} was dead`;
  if (pending > 0) screen.prose(`${runsOf(pending)} of them still waited: ${doubt}.`, "", "yellow");
}

const shown = 8;

function upcoming(screen: Screen, debian: DebianTasks, nowMs: number): void {
  const next = (task: { name: string; schedule: DebianTasks["tasks"][number]["schedule"] }) => {
    const zone = task.schedule.type === "cron" ? task.schedule.zone : machineZone;
    const expression = task.schedule.type === "cron" ? task.schedule.expression : "";
    return {
      name: task.name,
      zone,
      expression,
      slotMs: nextSlots(task.schedule, nowMs, 1)[0] ?? Number.POSITIVE_INFINITY,
    };
  };
  const imported = debian.tasks.map(next).sort((a, b) => a.slotMs - b.slotMs);
  screen.line();
  screen.line("Next slots", "bold");
  for (const { name, zone, expression, slotMs } of [...settlements.map(next), ...imported.slice(0, shown)]) {
    screen.line(
      `  ${zonedTime(slotMs, zone)} ${zone.padEnd(16)}  ${inWords(slotMs - nowMs).padEnd(10)} ${name.padEnd(24)}  ${expression}`,
    );
  }
  const [rest, last] = [imported.length - shown, imported.at(-1)];
  if (rest > 0 && last)
    screen.line(
      `  and ${rest} more of the crontabs, the last ${last.name} on ${zonedTime(last.slotMs, last.zone)}`,
      "dim",
    );
}
