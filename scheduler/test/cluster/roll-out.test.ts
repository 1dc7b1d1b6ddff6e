/** The effects of a roll-out on a task's definition, with real processes. Each event separately: conformance/releases.test.ts. */
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
/** Longer than a process takes to start on a busy machine, so that a crashed process is back in time. */
const releaseGrace = "15s";
const options = { sessionTimeout: "6s", releaseGrace, drain: "1s" };
const task = "settle";

interface Code {
  release: string;
  /** The period differs between consecutive releases, so that a slot shows which release's schedule planned it. */
  periodMs: number;
}

/** Round after round the old release is replaced by a new one, which then is the old one; each second roll-out is rolled back first. */
describe(`${processes} processes of one release are replaced by as many of the next (seed ${seed})`, () => {
  const many = rounds(2, 20);
  const schema = `roll_out_${process.pid}`;
  const folder = mkdtempSync(join(tmpdir(), "carillon-roll-out-"));
  const log = join(folder, "seen.log");
  const programs = new Programs();
  const database = new pg.Client({ connectionString: postgres().url, types: numbers });
  const random = seeded(seed);
  /** The expected periods of the task, one for each expected change. */
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
  /** The newest definition has this period, and a run of it has begun. */
  const isNow = (periodMs: number) =>
    until(`a run of a slot every ${periodMs} ms`, async () => {
      const newest = (await readVersions()).at(-1);
      if (newest?.periodMs !== periodMs) return false;
      return readSeen(log).some(
        ({ kind, slot }) => kind === "start" && slot > newest.changedMs && slot % periodMs === 0,
      );
    });
  const end = (name: string) => programs.end(name, random.next() < 0.5 ? "SIGTERM" : "SIGKILL");

  /** One after the other, as Kubernetes does: a new one is ready before an old one goes, and old ones restart in between. */
  async function replace(olds: string[], old: Code, next: Code): Promise<string[]> {
    const news: string[] = [];
    for (let n = 0; n < processes; n++) {
      news.push(await start(next));
      if (n === 0) expected.push(next.periodMs);
      await end(olds.shift() as string);
      // An old one is evicted and restarts, and a new one crashes.
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
        // The roll-out is rolled back half-way, and repeated once the rollback has taken effect.
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
    // Long enough for an old process to change the definition back, which must not happen.
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

  it("the definition is the new release's from its first start on, and changes at no other time than a roll-back", () => {
    expect(versions.map(({ periodMs }) => periodMs)).toEqual(expected);
  });

  it("no slot is run twice", () => {
    const begun = readSeen(log).filter(({ kind }) => kind === "start");
    const slots = begun.map(({ slot }) => slot);
    for (const [n, { version, periodMs, changedMs }] of versions.entries()) {
      const untilMs = versions[n + 1]?.changedMs ?? Number.POSITIVE_INFINITY;
      const own = slots.filter((slot) => slot > changedMs && slot < untilMs && slot % periodMs === 0);
      expect(own.length, `slots of version ${version}`).toBeGreaterThan(0);
    }
    expect(slots.filter((slot, at) => slots.indexOf(slot) !== at)).toEqual([]);
  });

  it("no slot of any of the definitions is unaccounted for", async () => {
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
      // The slots that the last definition accepted further ahead are for later processes; none is left.
      const untilMs = versions[n + 1]?.changedMs ?? changedMs + 10_000;
      for (let slot = Math.floor(changedMs / periodMs + 1) * periodMs; slot <= untilMs; slot += periodMs)
        if (!isKnown(slot)) missing.push(`${slot} of version ${version}`);
    }
    expect(missing).toEqual([]);
  });
});
