/** The demo's tasks: those that a program using Carillon would define, and the crontabs of Debian's packages. */
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Carillon, cron, every, type ImportedTask, importCrontab, type Run, type ScheduleSpec } from "carillon";
import type { Recorder } from "./record.ts";

const crontabs = fileURLToPath(new URL("../../crontabs", import.meta.url));

export const machineZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** The number of times that the failing task fails before it succeeds. */
export const failures = 2;

export const heartbeat = { name: "heartbeat", schedule: every("1s"), words: "every second" };
export const charge = {
  name: "charge-card",
  schedule: cron("*/5 * * * * *"),
  words: `every 5 s; fails ${failures} times, is tried again, succeeds`,
};
export const settlements = ["Asia/Shanghai", "America/New_York"].map((zone) => ({
  name: `settle-${zone.slice(zone.indexOf("/") + 1).toLowerCase()}`,
  schedule: cron("0 0 0 L * ?", { zone }),
  words: `midnight at the beginning of the month's last day, ${zone}`,
}));
export const reminder = { name: "reminder", words: "runs once, each at a time of its own" };

export interface DebianTasks {
  tasks: ImportedTask[];
  files: number;
  /** Descriptions of entries that did not become a task, with the reason. */
  problems: string[];
}

/** Reads the files under examples/crontabs, except README.md, in the same way as `carillon import crontab --shell`. */
export function debianTasks(): DebianTasks {
  const files = readdirSync(crontabs, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== "README.md")
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
  const read = files.map((file) => {
    const path = `/${relative(crontabs, file)}`;
    return { path, ...importCrontab({ path, text: readFileSync(file, "utf8") }, { zone: machineZone, shell: true }) };
  });
  return {
    files: files.length,
    tasks: read.flatMap(({ tasks }) => tasks),
    problems: read.flatMap(({ path, problems }) => problems.map(({ line, message }) => `${path}:${line}: ${message}`)),
  };
}

/** Returns all tasks with a schedule; the demo computes their slots itself. */
export function scheduledTasks(debian: DebianTasks): { name: string; schedule: ScheduleSpec }[] {
  return [heartbeat, charge, ...settlements, ...debian.tasks].map(({ name, schedule }) => ({ name, schedule }));
}

/**
 * Defines all tasks on a node. Handlers, and for commands the worker's reports, record starts and ends to a file, so that a kill -9 does
 * not lose them.
 */
export function defineTasks(tower: Carillon, record: Recorder): void {
  const told = (run: Run) => ({ task: run.task, run: run.id, attempt: run.attempt, fence: run.fence });

  tower.task(heartbeat.name, { schedule: heartbeat.schedule }, async (run) => {
    record.write({ kind: "start", ...told(run), slot: run.slot?.getTime() ?? null });
    await sleep(200);
    record.write({ kind: "end", ...told(run), slot: run.slot?.getTime() ?? null });
  });

  const again = { attempts: failures + 4, backoff: "fixed", delay: "500ms", jitter: 0 } as const;
  tower.task(charge.name, { schedule: charge.schedule, retry: again }, async (run) => {
    const what = { ...told(run), slot: run.slot?.getTime() ?? null };
    record.write({ kind: "start", ...what });
    await sleep(50);
    if (run.attempt <= failures) {
      record.write({ kind: "failed", ...what });
      throw new Error("the bank does not answer");
    }
    record.write({ kind: "end", ...what });
  });

  for (const { name, schedule } of settlements) {
    tower.task(name, { schedule, timeout: "2h", retry: 5, overlap: "queue" }, async (run) => {
      record.write({ kind: "start", ...told(run), slot: run.slot?.getTime() ?? null });
      await sleep(200);
      record.write({ kind: "end", ...told(run), slot: run.slot?.getTime() ?? null });
    });
  }

  tower.task(reminder.name, {}, async (run) => {
    record.write({ kind: "start", ...told(run), slot: null });
    await sleep(300);
    record.write({ kind: "end", ...told(run), slot: null });
  });

  // Commands have no handler that could record starts, so the worker's reports about their runs are recorded.
  const commands = new Set<string>();
  for (const { name, schedule, command, description } of debianTasks().tasks) {
    tower.task(name, { schedule, command, description });
    commands.add(name);
  }
  tower.onRun(({ kind, task, runId, attempt, slotMs, outcome }) => {
    if (!commands.has(task)) return;
    const what = kind === "started" ? "start" : outcome === "succeeded" ? "end" : "failed";
    record.write({ kind: what, task, run: runId, attempt, fence: null, slot: slotMs });
  });
}
