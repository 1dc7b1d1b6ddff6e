import type { Kind } from "../../tasks/create/kinds.ts";

/** The content of the file with the first task. */
export const exampleFile = `import { carillon } from "carillon";

export const tower = carillon({ store: process.env.DATABASE_URL ?? "embedded" });

tower.task("hello", {}, (run) => {
  run.log.info("hello");
});`;

/** The command that starts a worker for tasks of this kind. */
export const workerCommands: Record<Kind, string> = {
  http: "carillon worker --store postgres://… --allow-http api.example.com",
  command: "carillon worker --store postgres://… --allow echo",
  code: "carillon worker --store postgres://… tasks.ts",
};

/** The command that starts a worker without access to the store. */
export const remoteWorker = (server: string) => `CARILLON_WORKER_KEY=ck_… carillon worker --server ${server} tasks.ts`;

export const runCommand = (task: string) => `carillon tasks run ${/^[\w./:-]+$/.test(task) ? task : "NAME"} --wait`;
