import { randomBytes } from "node:crypto";
import { setImmediate as immediate } from "node:timers/promises";
import { afterEach, expect, it } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import { seeded } from "../../src/base/random.ts";
import { joinCluster } from "../../src/coordination/membership.ts";
import { Engine } from "../../src/engine/engine.ts";
import { Carillon } from "../../src/library/carillon.ts";
import { cron } from "../../src/schedule/schedule.ts";
import { settingsOf } from "../../src/settings/settings.ts";
import { realSurroundings } from "../../src/settings/surroundings.ts";
import { Definitions } from "../../src/store/definitions.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { StoreClock } from "../../src/store/store-clock.ts";
import { WatchedStore } from "../../src/testing/watched-store.ts";
import { postgres } from "../support/servers.ts";
import { StatementCount } from "../support/statement-count.ts";
import { complaints, openStage, recordingLog, until } from "../support/store-stage.ts";
import { VirtualClock } from "../support/virtual-clock.ts";

const ending: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});
/**
 * Heartbeats per node that the test waits for: first until its start is over, then twice while statements are counted. The leader's sweeps
 * have intervals of a minute at most, so statements are counted for longer than that.
 */
const [settledBeats, countedBeats] = [3, 10];
const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
/** On a busy machine a heartbeat can take long, and the next one would then send a second statement for what it did not read. */
const postgresOptions = { ...realSurroundings.postgres, readsBeside: false };

// Connects without a pooler, behind which nodes poll for signals. bench/idle.ts measures the rate of statements for longer and per driver.
it("three idle nodes send only their heartbeats, at most one a second in all, and keep running", async () => {
  const stage = await openStage(postgres());
  ending.push(() => stage.close());
  const count = await StatementCount.before(postgres().direct);
  ending.push(() => count.close());
  const towers: Carillon[] = [];
  for (let node = 0; node < 3; node++) {
    const options = { store: count.url, schema: stage.schema, handleSignals: false, log: silentLog };
    const tower = new Carillon(options, { ...realSurroundings, postgres: postgresOptions });
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
  const halfway = (await eachBeats(countedBeats, settled)) as number[];
  const ended = (await eachBeats(countedBeats, halfway)) as number[];
  const asked = count.statements - before;
  const beaten = ended.reduce((sum, beat, n) => sum + beat - (settled[n] as number), 0);
  // A heartbeat's statement may be counted before or after its row is visible, so the count may be off by one per node.
  expect(asked).toBeLessThanOrEqual(beaten + towers.length);
  expect(ended).toHaveLength(towers.length);
  expect(towers.filter(({ term }) => term !== null)).toHaveLength(1);
});

it("a leader with nothing to do sends less than 0.3 statements a second in an hour, with its heartbeats", async () => {
  const { sessionTimeoutMs, beatMs, horizonMs, keepMs, releaseGraceMs, rescueGraceMs } = settingsOf({});
  const stage = await openStage(postgres());
  ending.push(() => stage.close());
  await stage.task("yearly", { schedule: cron("0 0 1 1 *") });
  const count = await StatementCount.before(postgres().direct);
  ending.push(() => count.close());
  const clock = new VirtualClock(stage.nowMs);
  const watched = new WatchedStore(
    await openPostgres({ ...postgresOptions, url: count.url, schema: stage.schema }),
    clock,
  );
  const { store } = watched;
  ending.push(() => store.close());
  const storeClock = new StoreClock(clock);
  const { log, lines } = recordingLog();
  const process = { node: "a", role: "node", host: "here", pid: 1, version: "0", timeoutMs: sessionTimeoutMs } as const;
  const membership = await joinCluster({ store, clock, storeClock, log, identity: process, beatMs });
  let beats = 0;
  membership.onPulse(() => beats++);
  const definitions = new Definitions(store.tasks);
  const node = { store, membership, definitions, clock, storeClock, log, random: seeded(1) };
  const engine = new Engine({ ...node, horizonMs, rescueGraceMs, keepMs, releaseGraceMs });
  ending.push(() => engine.stop());
  const stepMs = 500;
  const pass = async (ms: number) => {
    for (let passedMs = 0; passedMs < ms; passedMs += stepMs) {
      clock.advance(stepMs);
      for (let asked = -1; asked !== watched.asked; await immediate()) {
        asked = watched.asked;
        await watched.answered();
      }
    }
  };
  await pass(minuteMs);
  expect(membership.term()).not.toBeNull();
  // Within an hour after midnight UTC the leader also changes the history's daily partitions. The counted hour is not to overlap with it,
  // so it begins later if midnight is less than about an hour away, before or after.
  const aroundMs = 61 * minuteMs;
  const inAroundMs = (clock.wall() + aroundMs) % dayMs;
  if (inAroundMs < 2 * aroundMs) await pass(2 * aroundMs - inAroundMs);
  const [statements, before] = [count.statements, beats];
  await pass(60 * minuteMs);
  const sent = count.statements - statements;
  expect(sent).toBeGreaterThanOrEqual(beats - before);
  expect(beats - before).toBeGreaterThanOrEqual((60 * minuteMs) / beatMs - 1);
  expect(sent).toBeLessThanOrEqual(0.3 * 3_600);
  expect(complaints(lines)).toEqual([]);
});
