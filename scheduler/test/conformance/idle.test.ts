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
/** Numbers of heartbeats of each node: until its start is over, and while statements are counted. */
const [settledBeats, countedBeats] = [3, 5];

// Behind a pooler signals are polled. bench/idle.ts measures it in seconds, for longer, and on each driver.
it("three idle nodes ask the store for nothing but their beats, which are at most one a second in all, and go on", async () => {
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
  /** Reads the rows directly, past the counting proxy. */
  const beats = async () =>
    (await stage.rows<{ beat: number }>("select beat::int from $s.session where ended_ms is null order by id")).map(
      ({ beat }) => beat,
    );
  const eachBeats = (more: number, since: readonly number[]) =>
    until(`each to beat ${more} times more`, async () => {
      const now = await beats();
      return now.every((beat, n) => beat >= (since[n] as number) + more) && now;
    });
  // Effects of the starts are over by then, including the search of each node's place among the beats.
  const settled = (await eachBeats(settledBeats, await beats())) as number[];
  const before = count.statements;
  const ended = (await eachBeats(countedBeats, settled)) as number[];
  const asked = count.statements - before;
  const beaten = ended.reduce((sum, beat, n) => sum + beat - (settled[n] as number), 0);
  // A heartbeat's statement may be counted before its row is visible, or the reverse: an error of one per node at each end.
  expect(asked).toBeLessThanOrEqual(beaten + towers.length);
  expect(ended).toHaveLength(towers.length);
  expect(towers.filter(({ term }) => term !== null)).toHaveLength(1);
});
