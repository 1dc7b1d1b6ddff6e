/** Takes a minute: the test starts real processes, whose handlers keep the workers full for some seconds. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lookingOptions } from "../../src/cli/store-choice.ts";
import { Carillon } from "../../src/library/carillon.ts";
import { until } from "../support/store-stage.ts";
import { WebhookReceiver } from "../support/webhook-receiver.ts";
import { alarmsFile, deployments } from "./alarm-deployments.ts";
import { rows, schema, url } from "./process.ts";

const guardMs = 60_000;
describe("late starts and skipped slots are reported in", () => {
  const receiver = new WebhookReceiver();
  let hook: string;
  beforeAll(async () => {
    hook = await receiver.listen();
  });
  afterAll(() => receiver.close());

  test.each(Object.keys(deployments))("%s, but a wait for the task's own limit is not late", async (name) => {
    receiver.posted.splice(0);
    await alarmsFile(hook);
    const beside = new Carillon({ ...lookingOptions({ store: url, schema, color: false }) });
    const end = await deployments[name]?.(beside, hook);
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
