import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { median } from "../../../zookeeper/test/support/median.ts";
import { ownPath, sharedServer } from "../../../zookeeper/test/support/servers.ts";
import { seeded } from "../../src/base/random.ts";
import { taskOptions } from "../../src/task/options.ts";
import { Programs, readSeen, type Seen, stalledMs } from "../support/programs.ts";
import { postgres, redis } from "../support/servers.ts";
import { until } from "../support/store-stage.ts";

const ways = [
  { by: "the store alone", rounds: 14, coordination: () => undefined },
  { by: "ZooKeeper", rounds: 6, coordination: () => `zookeeper://${sharedServer()}${ownPath("crash")}` },
  { by: "Redis", rounds: 2, coordination: () => `${redis().url}?prefix=crash-${process.pid}` },
];
const tasks = 60;
const seed = Number(process.env.CARILLON_TEST_SEED ?? Date.now() % 1_000_000);
/**
 * A slot that no dead process had claimed starts within this, where one that waited for a death to be noticed would take seconds. Processes
 * start and die meanwhile on the machine that also has the store, so half are to be as good as on time, and each is near it.
 */
const latestMs = 1_000;
const mostlyMs = 100;
/** A process knows the store's clock to half a round trip; `at` is read from this machine's own. */
const clockErrorMs = 5;
/** Detection and grace of a dead worker at default settings, and the run's start after them. */
const rerunMs = 10_500;

interface Ended {
  task: string;
  slot: number;
  outcome: number;
  attempt: number;
  code: string | null;
}

function groupBy<T>(items: T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group) group.push(item);
    else groups.set(keyOf(item), [item]);
  }
  return groups;
}

describe.each(ways)(`two processes coordinated by $by, one killed with -9, $rounds times (seed ${seed})`, (way) => {
  const { rounds } = way;
  const options = { coordination: way.coordination() };
  const schema = `crash_${rounds}_${process.pid}`;
  const folder = mkdtempSync(join(tmpdir(), "carillon-crash-"));
  const log = join(folder, "seen.log");
  const programs = new Programs();
  const database = new pg.Client({ connectionString: postgres().url });
  const killedAt = new Map<string, number>();
  let starts = new Map<string, Seen[]>();
  let stalls: Seen[] = [];
  let ended: Ended[] = [];
  let ledger: { task: string; slot: number; outcome: number; reason: string | null }[] = [];
  let lost = new Map<string, string[]>();
  /** The first process has started: a slot that came due while it did is no lateness of a crash. */
  let readyAt = 0;
  let pausedAt = 0;
  let lastVictim = "";

  const slotKey = ({ task, slot }: { task: string; slot: number }) => `${task} ${slot}`;

  beforeAll(async () => {
    await database.connect();
    const random = seeded(seed);
    const start = (name: string) =>
      programs.start({ store: postgres().url, schema, name, tasks, log, handlerMs: 300, options, stalls: true });
    await start("node-0");
    readyAt = Date.now();
    await start("node-1");
    const alive = ["node-0", "node-1"];
    for (let round = 0; round < rounds; round++) {
      await sleep(1_000 + random.next() * 1_500);
      // Either of the two: about every other time it is the one that leads.
      const [victim] = alive.splice(round === rounds - 1 ? await busier(alive) : random.next() < 0.5 ? 0 : 1, 1) as [
        string,
      ];
      killedAt.set(victim, Date.now());
      await programs.end(victim, "SIGKILL");
      const next = `node-${round + 2}`;
      await start(next);
      alive.push(next);
    }
    // The last victim's survivors live on, so its claims are taken back in the time that the settings promise. During the
    // rounds nobody lived for long enough to take a silent member for dead.
    lastVictim = [...killedAt.keys()].at(-1) as string;
    const killed = killedAt.get(lastVictim) as number;
    const survived = () => readSeen(log).some(({ kind, slot }) => kind === "start" && slot > killed + 1_000);
    await until("the survivors to start what came due after the kill", survived, 60_000);
    pausedAt = Date.now();
    await database.query(`update ${schema}.plan set next_slot_ms = null`);
    await settled();
    await read();
  }, 180_000);

  afterAll(async () => {
    await programs.endAll();
    await database.query(`drop schema if exists ${schema} cascade`);
    await database.end();
    rmSync(folder, { recursive: true });
  });

  /** Which of the two has claims: the last victim must have some, to show when they run again. */
  async function busier(alive: string[]): Promise<number> {
    for (;;) {
      const { rows } = await database.query(
        `select o.node from ${schema}.run r join ${schema}.session o on o.id = r.session_id
         where r.state = 3 and o.node = any($1) group by o.node order by count(*) desc limit 1`,
        [alive],
      );
      if (rows[0]) return alive.indexOf(rows[0].node);
    }
  }

  /** What is planned runs out, and what dead processes had claimed ends as its task says. */
  async function settled(): Promise<void> {
    for (;;) {
      const { rows } = await database.query(`select count(*)::int as left from ${schema}.run `);
      if (rows[0].left === 0) return;
      await sleep(100);
    }
  }

  async function read(): Promise<void> {
    const seen = readSeen(log);
    starts = groupBy(
      seen.filter(({ kind }) => kind === "start"),
      slotKey,
    );
    stalls = seen.filter(({ kind }) => kind === "stalled");
    const query = async <Row>(text: string) => (await database.query(text)).rows as Row[];
    ended = await query(
      `select t.name as task, h.slot_ms::float8 as slot, h.outcome, h.attempt, h.error->>'code' as code
       from ${schema}.run_history h join ${schema}.task t on t.id = h.task_id`,
    );
    ledger = await query(
      `select t.name as task, l.slot_ms::float8 as slot, l.outcome, l.reason from ${schema}.slot l join ${schema}.task t on t.id = l.task_id`,
    );
    const attempts = await query<{ task: string; slot: number; node: string }>(
      `select t.name as task, h.slot_ms::float8 as slot, o.node from ${schema}.attempt a join ${schema}.run_history h on h.id = a.run_id
       join ${schema}.task t on t.id = h.task_id join ${schema}.session o on o.id = a.session_id where a.outcome = 'lost'`,
    );
    lost = new Map([...groupBy(attempts, slotKey)].map(([key, rows]) => [key, rows.map(({ node }) => node)]));
  }

  test("no slot is lost: the ledger has every second of every task, and each became a run", async () => {
    const byTask = groupBy(ledger, ({ task }) => task);
    expect(byTask.size).toBe(tasks);
    for (const [task, slots] of byTask) {
      const times = slots.map(({ slot }) => slot).sort((a, b) => a - b);
      const last = times.at(-1) as number;
      expect(last, task).toBeGreaterThan(pausedAt);
      const expected = Array.from(
        { length: (last - (times[0] as number)) / 1_000 + 1 },
        (_, i) => (times[0] as number) + i * 1_000,
      );
      expect(times, task).toEqual(expected);
    }
    expect(ledger.filter(({ outcome }) => outcome !== 1)).toEqual([]);
    const { rows: ranges } = await database.query(`select * from ${schema}.slot_range`);
    expect(ranges).toEqual([]);
  });

  test("no slot is doubled: each has one accepted end", () => {
    const ends = ended.map(slotKey);
    expect(new Set(ends).size).toBe(ends.length);
    expect(ends.sort()).toEqual(ledger.map(slotKey).sort());
  });

  test("a slot started twice only because the first process to start it was killed", () => {
    for (const [key, seen] of starts) {
      const ordered = seen.sort((a, b) => a.attempt - b.attempt);
      expect(new Set(ordered.map(({ fence }) => fence)).size, key).toBe(ordered.length);
      for (let i = 1; i < ordered.length; i++) {
        const [first, second] = [ordered[i - 1] as Seen, ordered[i] as Seen];
        expect(second.fence, key).toBeGreaterThan(first.fence);
        expect(killedAt.get(first.node), `${key} started again by ${second.node} after ${first.node}`).toBeLessThan(
          second.at,
        );
      }
    }
  });

  test(`what no dead process had claimed started within ${latestMs} ms`, () => {
    const seen = [...starts].flatMap(([key, [first]]) => {
      if (!first || first.slot < readyAt || lost.has(key) || first.attempt > 1) return [];
      return [{ key, lateMs: first.at - first.slot - stalledMs(stalls, first) }];
    });
    expect(seen.filter(({ lateMs }) => lateMs > latestMs)).toEqual([]);
    expect(median(seen.map(({ lateMs }) => lateMs))).toBeLessThanOrEqual(mostlyMs);
    const early = [...starts].filter(([, seen]) => seen.some(({ at, slot }) => at < slot - clockErrorMs));
    expect(early).toEqual([]);
  });

  test("what a dead process had claimed runs again, or is given up and told, as its task says", () => {
    expect(lost.size, "no claim was ever lost: the test proved nothing").toBeGreaterThan(0);
    for (const run of ended) {
      const key = slotKey(run);
      const again = run.task.startsWith("again");
      if (run.outcome === 0) {
        expect(run.attempt, key).toBe((lost.get(key)?.length ?? 0) + 1);
      } else {
        expect(run.code, key).toBe("WORKER_LOST");
        // Three kills in a row can hit the same run: it is then taken to be their cause.
        if (again) expect(run.attempt, key).toBe(taskOptions.workerLosses.usual);
      }
      if (!again) expect(starts.get(key)?.length ?? 0, key).toBeLessThanOrEqual(1);
    }
    expect(ended.filter(({ code }) => code === "WORKER_LOST").length).toBeGreaterThan(0);
    const ofLast = [...lost].filter(([, nodes]) => nodes.at(-1) === lastVictim);
    expect(ofLast.length).toBeGreaterThan(0);
    for (const [key, nodes] of ofLast) {
      const last = starts.get(key)?.at(-1) as Seen;
      const died = killedAt.get(nodes.at(-1) as string) as number;
      expect(last.at - Math.max(died, last.slot), key).toBeLessThan(rerunMs);
    }
  });

  test("counters equal the rows", async () => {
    const { rows } = await database.query(
      `select sum(succeeded)::int as succeeded, sum(failed)::int as failed, sum(retried)::int as retried from (
         select succeeded, failed, retried from ${schema}.tally union all select succeeded, failed, retried from ${schema}.tally_delta) x`,
    );
    expect(rows[0]).toEqual({
      succeeded: ended.filter(({ outcome }) => outcome === 0).length,
      failed: ended.filter(({ outcome }) => outcome === 1).length,
      retried: [...lost.values()].flat().length,
    });
  });
});
