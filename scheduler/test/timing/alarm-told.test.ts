import { afterAll, beforeAll, test } from "vitest";
import { lookingOptions } from "../../src/cli/store-choice.ts";
import { Carillon } from "../../src/library/carillon.ts";
import { slotOutcome } from "../../src/store/postgres/states.ts";
import { alarmsFile, deployments } from "../cli/alarm-deployments.ts";
import { rows, schema, url } from "../cli/process.ts";
import { until } from "../support/store-stage.ts";
import { hold } from "../support/timing.ts";
import { WebhookReceiver } from "../support/webhook-receiver.ts";

const guardMs = 90_000;
const receiver = new WebhookReceiver();
let hook: string;
beforeAll(async () => {
  hook = await receiver.listen();
});
afterAll(() => receiver.close());

test.each(Object.keys(deployments))("a missed slot is told within 10 s: %s", async (name) => {
  receiver.posted.splice(0);
  await alarmsFile(hook);
  const beside = new Carillon({ ...lookingOptions({ store: url, schema, color: false }) });
  const end = await deployments[name]?.(beside, hook);
  try {
    const isTold = () => receiver.posted.some(({ body }) => body.rule === "unfired");
    await until("a slot was reported", isTold, guardMs);
    const toldMs = Date.now();
    // The end of a missed slot's run is the time at which the slot was given up.
    const [first] = await rows(
      `select min(h.ended_ms) as ms from $s.slot l join $s.run_history h on h.id = l.run_id where l.outcome = ${slotOutcome.missed}`,
    );
    hold(`missed → told, ${name}`, { ms: toldMs - Number(first?.ms), mostMs: 10_000 });
  } finally {
    await end?.();
    await beside.stop();
  }
});
