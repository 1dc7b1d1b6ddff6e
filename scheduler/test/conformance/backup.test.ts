import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Carillon, carillon } from "../../src/library/carillon.ts";
import type { Run } from "../../src/run/handler.ts";
import { every } from "../../src/schedule/schedule.ts";
import { sourceNumber } from "../../src/store/postgres/enqueue/sources.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { skipNumbers } from "../../src/store/postgres/recovery/restored.ts";
import { machinePostgres } from "../support/servers.ts";
import { numbers, recordingLog, until } from "../support/store-stage.ts";

const id = randomBytes(5).toString("hex");
const schema = "carillon";
const slot = sourceNumber("slot");
const [before, after] = [`live_${id}`, `restored_${id}`];
const urlOf = (database: string) => Object.assign(new URL(machinePostgres().url), { pathname: `/${database}` }).href;
const admin = new pg.Pool({ connectionString: machinePostgres().url, max: 1 });
const pools = [before, after].map(
  (database) => new pg.Pool({ connectionString: urlOf(database), types: numbers, max: 2 }),
) as [pg.Pool, pg.Pool];
const towers: Carillon[] = [];
let folder: string;

interface Began {
  run: number;
  fence: number;
  term: number;
}
const makeTower = (database: string, began: Began[]): Carillon => {
  const { log } = recordingLog();
  const tower = carillon({
    store: urlOf(database),
    schema,
    handleSignals: false,
    drain: "1s",
    log,
  });
  const note = (run: Run) => began.push({ run: run.id, fence: run.fence, term: tower.term ?? 0 });
  tower.task("beat", { schedule: every("200ms"), misfire: "fire_once" }, note);
  tower.task("enqueued", {}, note);
  tower.task("endless", { grace: "100ms" }, async (run: Run) => {
    note(run);
    if (towers.length === 1)
      await new Promise((resolve) => run.signal.addEventListener("abort", resolve, { once: true }));
  });
  towers.push(tower);
  return tower;
};
const tool = (name: string, ...args: string[]) => {
  const { status, stderr } = spawnSync(name, args, { encoding: "utf8" });
  expect([name, status, stderr]).toEqual([name, 0, ""]);
};

const nobody = "00000000-0000-4000-8000-000000000000";
/** Takes and releases a grace lock for each name, one after the other, none of them with a former holder. @returns the fences */
async function taken(database: string, ...names: string[]): Promise<number[]> {
  const store = await openPostgres({ url: urlOf(database), schema });
  const fences: number[] = [];
  for (const name of names) {
    const version = (await store.graceLocks.read(name))?.version ?? null;
    const take = await store.graceLocks.take(name, version, { holder: nobody, replaced: null }, 6_000, {});
    fences.push(take?.fence ?? Number.NaN);
    await store.graceLocks.vacate(name, nobody, null);
  }
  await store.close();
  return fences;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "carillon-backup-"));
  for (const database of [before, after]) await admin.query(`create database ${database}`);
});
afterAll(async () => {
  await Promise.all(towers.map((tower) => tower.stop()));
  await Promise.all(pools.map((pool) => pool.end()));
  for (const database of [before, after]) await admin.query(`drop database ${database} with (force)`);
  await admin.end();
  await rm(folder, { recursive: true });
});

it("a restored backup of a live store continues without repeating a run or reusing any number ever issued", async () => {
  const [first, second]: [Began[], Began[]] = [[], []];
  const live = await makeTower(before, first).start();
  await live.enqueue("endless", null);
  await Promise.all(Array.from({ length: 50 }, () => live.enqueue("enqueued", null)));
  await until("much has run", () => first.length > 55);
  const used = await taken(before, "nightly", "nightly");
  // Runs are enqueued while `pg_dump` reads the store.
  const going = Promise.all(Array.from({ length: 200 }, () => live.enqueue("enqueued", null)));
  const dump = join(folder, "store");
  tool("pg_dump", "--format=custom", `--schema=${schema}`, `--file=${dump}`, urlOf(before));
  await going;
  const later = await live.enqueue("enqueued", null, { in: "1h" });
  const usedLater = await taken(before, "nightly", "of the lost time", "of the lost time");
  await until("time goes on after the backup", () => first.length > 260);
  await live.stop();
  const highest = (what: keyof Began, some: Began[]) => Math.max(...some.map((one) => one[what]));

  tool("pg_restore", "--exit-on-error", `--dbname=${urlOf(after)}`, dump);
  const { rows: ended } = await pools[1].query(`select id from ${schema}.run_history where outcome = 0`);
  const { rows: claimed } = await pools[1].query(`select id from ${schema}.run where state = 3`);
  const { rows: slots } = await pools[1].query(`select task_id, slot_ms from ${schema}.slot`);
  expect([ended.length > 40, claimed.length > 0, slots.length > 0]).toEqual([true, true, true]);
  // Inserts a log line whose transaction id this server has not reached yet, as after a restore from a server that used more ids.
  const foreign = `insert into ${schema}.run_log (run_id, attempt, at_ms, level, message, xid) select 1, 1, (extract(epoch from now()) * 1000)::bigint, 1, 'x', '9000000000000'`;
  await pools[1].query(foreign);
  const next = await skipNumbers(urlOf(after), schema, { author: "test", reason: "the disk", nowMs: 1 });
  expect(next.runId).toBeGreaterThan(Math.max(later.runId, highest("run", first)));
  expect(next.fence).toBeGreaterThan(highest("fence", first));

  const foreigners = `select xid from ${schema}.run_log where xid >= '9000000000000'`;
  expect((await pools[1].query(foreigners)).rows, "told again at each look").toEqual([]);

  const tower = await makeTower(after, second).start();
  const runs = await Promise.all(Array.from({ length: 20 }, () => tower.enqueue("enqueued", null)));
  await until("what was claimed runs again, and the new ones run", () =>
    [...claimed.map((row) => row.id), ...runs.map(({ runId }) => runId)].every((run) =>
      second.some((one) => one.run === run),
    ),
  );
  expect(Math.min(...runs.map(({ runId }) => runId))).toBeGreaterThanOrEqual(next.runId);
  expect(Math.min(...second.map(({ fence }) => fence))).toBeGreaterThanOrEqual(next.fence);
  await until("it leads by a term that nobody had", () => (tower.term ?? 0) >= next.term);
  expect(next.term).toBeGreaterThan(highest("term", first));
  const again = new Set(second.map(({ run }) => run));
  expect(
    ended.filter((row) => again.has(row.id)),
    "what had ended",
  ).toEqual([]);
  const { rows: twice } = await pools[1].query(
    `select slot_ms from (select slot_ms, task_id from ${schema}.run where source = ${slot} union all
                          select slot_ms, task_id from ${schema}.run_history where source = ${slot}) r
     where slot_ms is not null group by task_id, slot_ms having count(*) > 1`,
  );
  expect(twice, "slots with two runs").toEqual([]);
  const { rows: told } = await pools[1].query(`select why from ${schema}.audit where act = 'restore'`);
  expect(told).toEqual([{ why: "the disk" }]);
  const lock = await tower.lock("after").acquire();
  expect(Number(lock.fence)).toBeGreaterThan(2 ** 32 * 1_000);
  const fences = await taken(after, "nightly", "of the lost time");
  expect(Math.min(...fences), "of grace locks").toBeGreaterThan(Math.max(...used, ...usedLater));

  const tooLate = skipNumbers(urlOf(after), schema, { author: "test", reason: "too late", nowMs: 1 });
  await expect(tooLate).rejects.toMatchObject({
    code: "STORE_IN_USE",
    message: expect.stringContaining(`node ${tower.node} (process ${process.pid} on `),
  });
  await expect(tooLate).rejects.toThrow(/a process that uses locks/);
  await lock.release();
  const { rows: restores } = await pools[1].query(`select why from ${schema}.audit where act = 'restore'`);
  expect(restores, "nothing was changed").toEqual([{ why: "the disk" }]);
});
