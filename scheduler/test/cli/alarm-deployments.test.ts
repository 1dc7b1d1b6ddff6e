/** Takes a minute: the test starts real processes, whose handlers keep the workers full for some seconds. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lookingOptions } from "../../src/cli/store-choice.ts";
import { Carillon, carillon } from "../../src/library/carillon.ts";
import { every } from "../../src/schedule/schedule.ts";
import { defineTask, type TaskOptions } from "../../src/task/task.ts";
import { recordingLog, until } from "../support/store-stage.ts";
import { WebhookReceiver } from "../support/webhook-receiver.ts";
import { file, here, json, rows, schema, start, url } from "./process.ts";

const guardMs = 60_000;
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

describe("late starts and skipped slots are reported in", () => {
  const receiver = new WebhookReceiver();
  let hook: string;
  beforeAll(async () => {
    hook = await receiver.listen();
  });
  afterAll(() => receiver.close());

  const withAlarms = () => ["--alarms", "late-alarms.yaml"];
  /**
   * Functions by the name of a deployment, each of which starts a cluster in which one process sends alarms. It resolves with the
   * function that stops the cluster, which does nothing if the cluster consists of child processes.
   */
  const deployments: Record<string, (beside: Carillon) => Promise<() => Promise<void>>> = {
    async library() {
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

  test.each(Object.keys(deployments))("%s, but a wait for the task's own limit is not late", async (name) => {
    receiver.posted.splice(0);
    await file("late-alarms.yaml", `channels:\n  ops: { webhook: "${hook}" }\nlate: 2s\nsummary: 1s\n`);
    const beside = new Carillon({ ...lookingOptions({ store: url, schema, color: false }) });
    const end = await deployments[name]?.(beside);
    try {
      const looked = async () => (await rows("select from $s.alarm_seen where task_id = 0")).length === 1;
      await until("alarms were looked for", looked, guardMs);
      const told = (rule: string) => receiver.posted.flatMap(({ body }) => (body.rule === rule ? body.subjects : []));
      await Promise.all(Array.from({ length: 10 }, () => beside.enqueue("blocks")));
      await until(
        "both were told",
        async () => {
          await beside.enqueue("waits");
          await sleep(500);
          return told("late").length > 0 && told("unfired").length > 0;
        },
        guardMs,
      );
      expect([...new Set(told("late").map(({ task }) => task))]).toEqual(["waits"]);
      expect(told("late")[0]).toMatchObject({ text: expect.stringMatching(/^started up to \d+ s late$/) });
      expect(told("unfired")).toContainEqual(
        expect.objectContaining({ task: "serial", text: "slots were given up by the task's misfire policy" }),
      );
    } finally {
      await end?.();
      await beside.stop();
    }
  });
});
