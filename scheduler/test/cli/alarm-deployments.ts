import { setTimeout as sleep } from "node:timers/promises";
import { type Carillon, carillon } from "../../src/library/carillon.ts";
import { every } from "../../src/schedule/schedule.ts";
import { defineTask, type TaskOptions } from "../../src/task/task.ts";
import { recordingLog } from "../support/store-stage.ts";
import { file, here, json, schema, start, url } from "./process.ts";

const busyMs = 6_000;

/**
 * Runs of `serial` and `blocks` fill a worker with two slots; their later runs wait only for their own task's limit. A run of `waits` then
 * finds no free slot.
 */
const tasks: Record<string, TaskOptions> = {
  serial: { schedule: every("1s"), overlap: "queue", misfire: { policy: "skip", after: "1s" } },
  blocks: { overlap: "queue" },
  waits: {},
};
const inCode = `
import { carillon, every } from "carillon";
const busy = () => new Promise((resolve) => setTimeout(resolve, ${busyMs}));
export const tower = carillon({ concurrency: 2, drain: "1s" });
tower.task("serial", { schedule: every("1s"), overlap: "queue", misfire: { policy: "skip", after: "1s" } }, busy);
tower.task("blocks", { overlap: "queue" }, busy);
tower.task("waits", {}, () => undefined);
`;
const behindServer = `
import { worker } from "carillon/worker";
const busy = () => new Promise((resolve) => setTimeout(resolve, ${busyMs}));
export const one = worker({ concurrency: 2, drain: "1s" }).task("serial", busy).task("blocks", busy).task("waits", () => undefined);
`;

const withAlarms = () => ["--alarms", "late-alarms.yaml"];
/** Writes the alarms' file of the deployments. @param hook the URL of the only channel */
export const alarmsFile = (hook: string) =>
  file("late-alarms.yaml", `channels:\n  ops: { webhook: "${hook}" }\nlate: 2s\nsummary: 1s\n`);
/**
 * Starts a cluster in which one process sends alarms; by the name of the deployment. Resolves with a function that stops the cluster; it
 * does nothing if the cluster consists of child processes.
 */
export const deployments: Record<string, (beside: Carillon, hook: string) => Promise<() => Promise<void>>> = {
  async library(_, hook) {
    const alarms = { channels: { ops: { webhook: hook } }, late: "2s", summary: "1s" };
    const own = { store: url, schema, handleSignals: false, log: recordingLog().log, drain: "1s" };
    const tower = carillon({ ...own, concurrency: 2, alarms });
    for (const [name, options] of Object.entries(tasks))
      tower.task(name, options, () => (name === "waits" ? undefined : sleep(busyMs)));
    await tower.start();
    return () => tower.stop();
  },
  async dev() {
    const dev = start(["dev", await file("late.ts", inCode), ...withAlarms(), ...here(), "--json"]);
    await dev.says(/"event":"ready"/);
    return async () => undefined;
  },
  async "server + worker"() {
    const server = start(["server", ...withAlarms(), ...here(), "--json"]);
    const worker = start(["worker", await file("late.ts", inCode), ...here(), "--json"]);
    await server.says(/server is ready/);
    await worker.says(/worker is ready/);
    return async () => undefined;
  },
  async "server + remote worker"(beside) {
    const server = start(["server", ...withAlarms(), ...here(), "--listen", "127.0.0.1:0", "--json"]);
    const [, address] = await server.says(/"listening":"([^"]+)"/);
    const env = { CARILLON_WORKER_KEY: (await json("keys", "create", "one")).key as string };
    const path = await file("remote.ts", behindServer);
    const worker = start(["worker", path, "--server", `http://${address}`, "--json"], { env });
    await worker.says(/worker is ready/);
    // The tasks are saved last, because slots of `serial` that were due before the worker is ready would themselves be late.
    for (const [name, options] of Object.entries(tasks)) await beside.save(defineTask(name, options));
    return async () => undefined;
  },
};
