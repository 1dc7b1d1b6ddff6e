/** Tests what a roll-out does to a task's definition, with real processes. conformance/releases.test.ts tests each event separately. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { seeded } from "../../src/base/random.ts";
import { rounds, seed } from "../support/long.ts";
import { Programs, readSeen } from "../support/programs.ts";
import { postgres } from "../support/servers.ts";
import { numbers, until } from "../support/store-stage.ts";

const processes = rounds(2, 3);
/** The grace time: longer than a process takes to start on a busy machine, so that it has restarted before the grace ends. */
const releaseGrace = "15s";
const options = { sessionTimeout: "6s", releaseGrace, drain: "1s" };
const task = "settle";

interface Code {
  release: string;
  /** The period in ms of the task's schedule. Consecutive releases have different periods, so a slot shows which release planned it. */
  periodMs: number;
}

/** In each round a new release replaces the old one. In each second round the roll-out is first rolled back and then repeated. */
describe(`${processes} processes of one release are replaced by as many of the next release (seed ${seed})`, () => {
  const many = rounds(2, 20);
  const schema = `roll_out_${process.pid}`;
  const folder = mkdtempSync(join(tmpdir(), "carillon-roll-out-"));
  const log = join(folder, "seen.log");
  const programs = new Programs();
  const database = new pg.Client({ connectionString: postgres().url, types: numbers });
  const random = seeded(seed);
  /** The periods that the task's definition is expected to have, one after the other. */
  const expected: number[] = [];
  let started = 0;
  let versions: { version: number; periodMs: number; changedMs: number }[] = [];

  const codeOf = (round: number): Code => ({ release: `build-${round}`, periodMs: 200 + 50 * (round % 4) });
  const start = async ({ release, periodMs }: Code): Promise<string> => {
    const name = `${release}-${++started}`;
    const given = { store: postgres().url, schema, name, tasks: 0, log, handlerMs: 20 };
    await programs.start({ ...given, periods: { [task]: `${periodMs}ms` }, options: { ...options, release } });
    return name;
  };
  const readVersions = async () =>
    (
      await database.query(
        `select version, (definition -> 'schedule' ->> 'everyMs')::float8 as "periodMs", changed_ms as "changedMs"
         from ${schema}.task_version order by version`,
      )
    ).rows;
  /** Waits until the newest definition has this period and a run of this definition has started. */
  const isNow = (periodMs: number) =>
    until(`a run of a slot every ${periodMs} ms`, async () => {
      const newest = (await readVersions()).at(-1);
      if (newest?.periodMs !== periodMs) return false;
      return readSeen(log).some(
        ({ kind, slot }) => kind === "start" && slot > newest.changedMs && slot % periodMs === 0,
      );
    });
  const end = (name: string) => programs.end(name, random.next() < 0.5 ? "SIGTERM" : "SIGKILL");

  /**
   * Replaces the processes one after the other, as Kubernetes does: a new process is ready before an old one ends. Some processes restart
   * in between.
   */
  async function replace(olds: string[], old: Code, next: Code): Promise<string[]> {
    const news: string[] = [];
    for (let n = 0; n < processes; n++) {
      news.push(await start(next));
      if (n === 0) expected.push(next.periodMs);
      await end(olds.shift() as string);
      // An old process is evicted and restarts, and a new process crashes and restarts.
      if (olds.length > 0) {
        await end(olds.shift() as string);
        olds.push(await start(old));
      }
      await programs.end(news.pop() as string, "SIGKILL");
      news.push(await start(next));
      await sleep(random.next() * 500);
    }
    return news;
  }

  beforeAll(async () => {
    await database.connect();
    let old = codeOf(0);
    let olds: string[] = [];
    for (let n = 0; n < processes; n++) olds.push(await start(old));
    expected.push(old.periodMs);
    for (let round = 1; round <= many; round++) {
      const next = codeOf(round);
      if (round % 2 === 0) {
        // This roll-out ends after its first process and is rolled back; it is repeated once the old definition is in force again.
        const first = await start({ ...next, release: `${next.release}-bad` });
        expected.push(next.periodMs);
        await sleep(random.next() * 1_000);
        await end(first);
        expected.push(old.periodMs);
        await isNow(old.periodMs);
      }
      olds = await replace(olds, old, next);
      await isNow(next.periodMs);
      old = next;
    }
    // In this time an old process could change the definition back, which must not happen.
    await sleep(5_000);
    await Promise.all(olds.map((name) => programs.end(name, "SIGTERM")));
    versions = await readVersions();
  }, 3_600_000);

  afterAll(async () => {
    await programs.endAll();
    await database.query(`drop schema if exists ${schema} cascade`);
    await database.end();
    rmSync(folder, { recursive: true });
  });

  it("the task has the new release's definition from its first start on, and changes back only on a roll-back", () => {
    expect(versions.map(({ periodMs }) => periodMs)).toEqual(expected);
  });

  it("no slot runs twice", () => {
    const begun = readSeen(log).filter(({ kind }) => kind === "start");
    const slots = begun.map(({ slot }) => slot);
    for (const [n, { version, periodMs, changedMs }] of versions.entries()) {
      const untilMs = versions[n + 1]?.changedMs ?? Number.POSITIVE_INFINITY;
      const own = slots.filter((slot) => slot > changedMs && slot < untilMs && slot % periodMs === 0);
      expect(own.length, `slots of version ${version}`).toBeGreaterThan(0);
    }
    expect(slots.filter((slot, at) => slots.indexOf(slot) !== at)).toEqual([]);
  });

  it("every slot of every definition is accounted for", async () => {
    const { rows } = await database.query(
      `select slot_ms as "fromMs", slot_ms as "toMs" from ${schema}.slot
       union all select from_ms, to_ms from ${schema}.slot_range`,
    );
    const singles = new Set(rows.filter(({ fromMs, toMs }) => fromMs === toMs).map(({ fromMs }) => fromMs as number));
    const ranges = rows.filter(({ fromMs, toMs }) => fromMs !== toMs) as { fromMs: number; toMs: number }[];
    const isKnown = (slot: number) =>
      singles.has(slot) || ranges.some(({ fromMs, toMs }) => fromMs <= slot && slot <= toMs);
    const missing: string[] = [];
    for (const [n, { version, periodMs, changedMs }] of versions.entries()) {
      // The last definition has planned slots further ahead than any process ran, so only the first ten seconds are checked.
      const untilMs = versions[n + 1]?.changedMs ?? changedMs + 10_000;
      for (let slot = Math.floor(changedMs / periodMs + 1) * periodMs; slot <= untilMs; slot += periodMs)
        if (!isKnown(slot)) missing.push(`${slot} of version ${version}`);
    }
    expect(missing).toEqual([]);
  });
});
