import { randomBytes } from "node:crypto";
import { afterEach, expect, it } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import { type Carillon, carillon } from "../../src/library/carillon.ts";
import { cron } from "../../src/schedule/schedule.ts";
import { postgres } from "../support/servers.ts";
import { StatementCount } from "../support/statement-count.ts";
import { openStage } from "../support/store-stage.ts";

const ending: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});
const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

// Behind a pooler signals are polled. bench/idle.ts measures it for longer, and on each driver.
it("three idle nodes ask the store for at most one statement a second in all, and never stop asking", async () => {
  const stage = await openStage(postgres());
  ending.push(() => stage.close());
  const count = await StatementCount.before(postgres().direct);
  ending.push(() => count.close());
  const towers: Carillon[] = [];
  for (let node = 0; node < 3; node++) {
    const tower = carillon({ store: count.url, schema: stage.schema, handleSignals: false, log: silentLog });
    tower.task(`yearly-${randomBytes(2).toString("hex")}`, { schedule: cron("0 0 1 1 *") }, () => undefined);
    ending.push(() => tower.stop());
    towers.push(await tower.start());
  }
  const { beatMs } = (towers[0] as Carillon).settings;
  // What the starts set off, the finding of each one's place among the beats with it, is over by then.
  await wait(2 * beatMs);
  const before = count.statements;
  const began = performance.now();
  await wait(18_000);
  const asked = count.statements - before;
  const tookS = (performance.now() - began) / 1_000;
  // A beat each 3 s, and nothing else, would be exactly one a second.
  expect(asked).toBeLessThan(tookS - 0.5);
  expect(asked, "each beats").toBeGreaterThanOrEqual(3 * Math.floor((1_000 * tookS) / beatMs / 1.5));
  expect(towers.filter(({ term }) => term !== null)).toHaveLength(1);
});
