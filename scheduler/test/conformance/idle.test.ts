import { randomBytes } from "node:crypto";
import { afterEach, expect, it } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import { type Carillon, carillon } from "../../src/library/carillon.ts";
import { cron } from "../../src/schedule/schedule.ts";
import { postgres } from "../support/servers.ts";
import { StatementCount } from "../support/statement-count.ts";
import { openStage, until } from "../support/store-stage.ts";

const ending: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});
/** Heartbeats per node that the test waits for: first until its start is over, then while statements are counted. */
const [settledBeats, countedBeats] = [3, 5];

// Connects without a pooler, behind which nodes poll for signals. bench/idle.ts measures the rate of statements for longer and per driver.
it("three idle nodes send only their heartbeats, at most one a second in all, and keep running", async () => {
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
  expect(towers.map(({ settings }) => settings.beatMs / towers.length >= 1_000)).toEqual([true, true, true]);
  /** Reads the heartbeat counters directly, so that the counting proxy does not see the query. */
  const beats = async () =>
    (await stage.rows<{ beat: number }>("select beat::int from $s.session where ended_ms is null order by id")).map(
      ({ beat }) => beat,
    );
  const eachBeats = (more: number, since: readonly number[]) =>
    until(`each to beat ${more} times more`, async () => {
      const now = await beats();
      return now.every((beat, n) => beat >= (since[n] as number) + more) && now;
    });
  // By then the start-up queries are over, including those that spread the heartbeats of the nodes over time.
  const settled = (await eachBeats(settledBeats, await beats())) as number[];
  const before = count.statements;
  const ended = (await eachBeats(countedBeats, settled)) as number[];
  const asked = count.statements - before;
  const beaten = ended.reduce((sum, beat, n) => sum + beat - (settled[n] as number), 0);
  // A heartbeat's statement may be counted before or after its row is visible, so the count may be off by one per node.
  expect(asked).toBeLessThanOrEqual(beaten + towers.length);
  expect(ended).toHaveLength(towers.length);
  expect(towers.filter(({ term }) => term !== null)).toHaveLength(1);
});
