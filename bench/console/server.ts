/** The process under test: a node with default settings that serves the console, plans the tasks and executes their runs. */
import { carillon, cron } from "carillon";
import { answerAsSubject } from "../measure/subject.ts";

export interface Order {
  url: string;
  schema: string;
  port: number;
  tasks: number;
}

export const nameOf = (task: number) => `bench-${String(task).padStart(5, "0")}`;
/** Each task runs twice an hour; the times are spread evenly, so that with 10,000 tasks the page receives about five runs a second. */
const everyMinutes = 30;

/**
 * Each task with a number below this one, except the first task, runs after the task before it, so that the pages of flows have something
 * to show.
 */
const chained = 20;

/** Defines the tasks on `tower`, which stores them when it starts. */
export function define(tower: ReturnType<typeof carillon>, tasks: number): void {
  for (let task = 0; task < tasks; task++) {
    const minute = Math.floor(task / 60) % everyMinutes;
    const schedule = cron(`${task % 60} ${minute},${minute + everyMinutes} * * * *`, { zone: "UTC" });
    const group = `team-${task % 7}`;
    const isChained = task > 0 && task < chained;
    tower.task(nameOf(task), isChained ? { after: nameOf(task - 1), group } : { schedule, group }, () => undefined);
  }
}

if (process.argv[2]?.startsWith("{")) {
  const { url, schema, port, tasks } = JSON.parse(process.argv[2]) as Order;
  const tower = carillon({ store: url, schema, listen: `127.0.0.1:${port}`, handleSignals: false });
  define(tower, tasks);
  const tell = answerAsSubject(() => tower.stop());
  await tower.start();
  tell({ kind: "started" });
}
