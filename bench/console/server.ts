/** The process under test: a node with defaults that serves the console, plans the tasks and runs them when they are due. */
import { carillon, cron } from "carillon";
import { answerAsSubject } from "../measure/subject.ts";

export interface Order {
  url: string;
  schema: string;
  port: number;
  tasks: number;
}

export const nameOf = (task: number) => `bench-${String(task).padStart(5, "0")}`;
/** Each task runs twice an hour, evenly: of 10,000 some five fire every second, so the page receives events. */
const everyMinutes = 30;

/** Stored when `tower` starts. */
export function define(tower: ReturnType<typeof carillon>, tasks: number): void {
  for (let task = 0; task < tasks; task++) {
    const minute = Math.floor(task / 60) % everyMinutes;
    const schedule = cron(`${task % 60} ${minute},${minute + everyMinutes} * * * *`, { zone: "UTC" });
    tower.task(nameOf(task), { schedule, group: `team-${task % 7}` }, () => undefined);
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
