import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Programs, readSeen, type Seen } from "../support/programs.ts";
import { postgres } from "../support/servers.ts";
import { until } from "../support/store-stage.ts";

/**
 * Runtime of the handlers, in ms. Runs that started shortly before the process was suspended are still running when it resumes, because
 * their timers do not advance meanwhile.
 */
const handlerMs = 4_000;
const patienceMs = 120_000;

describe("a process stopped for longer than its session (SIGSTOP, SIGCONT)", () => {
  const schema = `pause_${process.pid}`;
  const folder = mkdtempSync(join(tmpdir(), "carillon-pause-"));
  const log = join(folder, "seen.log");
  const programs = new Programs();
  const database = new pg.Client({ connectionString: postgres().url });
  let seen: Seen[] = [];
  let stoppedAt = 0;
  let continuedAt = 0;

  beforeAll(async () => {
    await database.connect();
    const start = (name: string) =>
      programs.start({
        store: postgres().url,
        schema,
        name,
        tasks: 8,
        log,
        handlerMs,
        even: true,
        options: { sessionTimeout: "5s" },
      });
    const started = (node: string, since: number, attempt = 1) =>
      readSeen(log).some(
        (one) => one.kind === "start" && one.node === node && one.at > since && one.attempt >= attempt,
      );
    await start("sleeper");
    await until("it to run", () => started("sleeper", 0), patienceMs);
    // The first process was alone until now, so it has already claimed the runs of the next second.
    await start("other");
    await until("it to have begun lately", () => started("sleeper", Date.now() - 500), patienceMs);
    stoppedAt = Date.now();
    programs.signal("sleeper", "SIGSTOP");
    // After session timeout and grace, the other process starts the runs that the suspended process was executing.
    await until("its claims to be taken back", () => started("other", stoppedAt, 2), patienceMs);
    continuedAt = Date.now();
    programs.signal("sleeper", "SIGCONT");
    await until("it to run again", () => started("sleeper", continuedAt), patienceMs);
    await database.query(`update ${schema}.plan set next_slot_ms = null`);
    const left = async () => (await database.query(`select count(*)::int as left from ${schema}.run`)).rows[0].left;
    await until("all to end", async () => (await left()) === 0, patienceMs);
    // The suspended process may send its own verdicts after all runs have ended.
    await programs.endAll("SIGTERM");
    seen = readSeen(log);
  }, 4 * patienceMs);

  afterAll(async () => {
    await programs.endAll();
    await database.query(`drop schema if exists ${schema} cascade`);
    await database.end();
    rmSync(folder, { recursive: true });
  });

  test("its claims are taken back while it is stopped, and it rejoins with a new session", async () => {
    const { rows } = await database.query(
      `select node, ended_why from ${schema}.session where node = 'sleeper' order by id`,
    );
    expect(rows.length).toBe(2);
    expect(rows[0].ended_why).toMatch(/^silent for \d+ ms, seen by other$/);
    const again = seen.filter(
      ({ kind, node, attempt, at }) => kind === "start" && node === "other" && attempt > 1 && at <= continuedAt,
    );
    expect(again.length).toBeGreaterThan(0);
    const back = seen.filter(({ kind, node, at }) => kind === "start" && node === "sleeper" && at > continuedAt);
    expect(back.length, "it works again after it joined anew").toBeGreaterThan(0);
  });

  test("results that it finished too late are refused and recorded, and its handlers are aborted", async () => {
    const { rows } = await database.query(
      `select l.run_id, l.fence::float8, h.fence::float8 as accepted, h.outcome, h.error->>'code' as code
       from ${schema}.late_result l join ${schema}.run_history h on h.id = l.run_id`,
    );
    expect(rows.length).toBeGreaterThan(0);
    for (const row of rows) {
      // Either the verdict of a later claim counts, or the run was given up as its task's options say.
      if (row.outcome === 0) expect(row.accepted).toBeGreaterThan(row.fence);
      else expect(row.code).toBe("WORKER_LOST");
    }
    const told = seen.filter(
      ({ kind, node, at, aborted, fence }) =>
        kind === "end" &&
        node === "sleeper" &&
        at > continuedAt + 500 &&
        aborted &&
        seen.some((s) => s.fence === fence && s.kind === "start" && s.at < stoppedAt),
    );
    expect(told.length).toBeGreaterThan(0);
  });

  test("runs that it had claimed but not started are not started after it continues", () => {
    for (const { fence, at, slot, node, kind } of seen) {
      if (kind !== "start" || node !== "sleeper" || at < continuedAt) continue;
      const rivals = seen.filter(
        (other) =>
          other.kind === "start" &&
          other.node === "other" &&
          other.slot === slot &&
          other.fence > fence &&
          other.at < at,
      );
      const sameRun = rivals.filter((rival) => seen.some((s) => s.fence === fence && s.task === rival.task));
      expect(sameRun, `fence ${fence} at ${at}`).toEqual([]);
    }
  });

  test("every slot has exactly one accepted end", async () => {
    const { rows } = await database.query(
      `select (select count(*) from ${schema}.slot where outcome = 1)::int as slots,
              (select count(*) from ${schema}.run_history)::int as ends,
              (select count(distinct (task_id, slot_ms)) from ${schema}.run_history)::int as distinct_ends`,
    );
    expect(rows[0].ends).toBe(rows[0].slots);
    expect(rows[0].distinct_ends).toBe(rows[0].slots);
  });
});
