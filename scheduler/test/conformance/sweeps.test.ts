import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { noLimits } from "../../src/access/quota-store.ts";
import { silentLog } from "../../src/base/log.ts";
import type { Membership } from "../../src/cluster/membership.ts";
import { enqueuingMs, type Sweep, sweeps } from "../../src/cluster/sweeps.ts";
import { Janitor } from "../../src/engine/janitor.ts";
import { at } from "../../src/schedule/schedule.ts";
import { runState } from "../../src/store/postgres/states.ts";
import { StoreClock } from "../../src/store/store-clock.ts";
import { releaseOf } from "../../src/task/release.ts";
import { defineTask } from "../../src/task/task.ts";
import { everyPostgres } from "../support/servers.ts";
import { change, dayMs, openStage, type Stage } from "../support/store-stage.ts";
import { VirtualClock } from "../support/virtual-clock.ts";

const hourMs = 3_600_000;
const minuteMs = 60_000;

interface Appeared {
  /** How far after the stage's time the sweep finds the row, in ms. */
  inMs?: number;
  /** True if the heartbeat already reports the sweep at the stage's time. Default: true if `inMs` is 0. */
  isAhead?: boolean;
  /** SQL that selects the row as long as it has not been swept. */
  sql: string;
}

describe.each(everyPostgres())("the leader's heartbeat reports the sweeps that are needed, $title", (server) => {
  let stage: Stage;
  let leader: number;
  beforeAll(async () => {
    stage = await openStage(server);
    leader = await stage.session();
    await stage.lead(leader);
  });
  afterAll(() => stage.close());

  const name = () => `t-${randomBytes(4).toString("hex")}`;
  const reported = async (inMs = 0, sessionId = leader) =>
    (await stage.store.sessions.beat(sessionId, stage.nowMs + inMs, { unserved: true })).sweeps;

  /** Makes a janitor whose time is `inMs` after the stage's, and which has rotated the history. */
  async function janitor(inMs: number) {
    const clock = new VirtualClock(stage.nowMs + inMs);
    const storeClock = new StoreClock(clock);
    storeClock.sample(clock.monotonic(), stage.nowMs + inMs, clock.monotonic());
    const made = new Janitor({
      store: stage.store,
      membership: { node: "leader", term: () => 1 } as Membership,
      clock,
      storeClock,
      log: silentLog,
      keepMs: 10 * dayMs,
      releaseGraceMs: minuteMs,
    });
    clock.advance(minuteMs);
    return made;
  }

  /** By sweep: a function that creates a row for this sweep. */
  const appear: Record<Exclude<Sweep, "historySizes">, () => Promise<Appeared>> = {
    async changedTasks() {
      const task = await stage.task(name());
      const runId = await stage.enqueue(task);
      expect(await reported(), "a new task has no misplaced runs").not.toContain("changedTasks");
      await stage.store.tasks.pause(task.definition.name, change(stage.nowMs));
      await stage.store.tasks.resume(task.definition.name, change(stage.nowMs));
      // Simulates a transaction that read the task while it was paused and inserted the run afterwards.
      await stage.rows(`update $s.run set state = ${runState.paused} where id = $1`, [runId]);
      return { sql: `select from $s.run where id = ${runId} and state = ${runState.paused}` };
    },
    async expiredRuns() {
      const runId = await stage.enqueue(await stage.task(name()), { expiresMs: stage.nowMs + hourMs });
      return { inMs: hourMs, sql: `select from $s.run where id = ${runId}` };
    },
    async knownKeys() {
      const { taskId } = await stage.task(name());
      const row = [taskId, stage.nowMs + hourMs];
      await stage.rows("insert into $s.known_key (task_id, key, run_id, until_ms) values ($1, 'k', 1, $2)", row);
      return { inMs: hourMs, sql: "select from $s.known_key" };
    },
    async auditRows() {
      const holder = await stage.sql.connect();
      try {
        await holder.query("begin");
        await holder.query(`select from ${stage.schema}.audit_chain for update`);
        await stage.task(name());
        await holder.query("commit");
      } finally {
        holder.release();
      }
      return { sql: "select from $s.audit where seq is null" };
    },
    async workerKeys() {
      const key = { name: "brief", groups: ["a"], hash: randomBytes(32), createdBy: "test" };
      await stage.store.workers.createKey({ ...key, expiresMs: stage.nowMs + hourMs }, stage.nowMs);
      return { inMs: hourMs, sql: "select from $s.worker_key where revoked_ms is null" };
    },
    async endedTasks() {
      const definition = defineTask(name(), { schedule: at(stage.nowMs - hourMs), atEnd: "remove" });
      const { record } = await stage.store.tasks.save(definition, null, change(stage.nowMs));
      return { sql: `select from $s.task where id = ${record.taskId} and deleted_ms is null` };
    },
    async sessions() {
      const sessionId = await stage.session("worker");
      await stage.store.sessions.end(sessionId, null, stage.nowMs, "stopped");
      return { inMs: 11 * minuteMs, sql: `select from $s.session where id = ${sessionId} and not swept` };
    },
    async counters() {
      const { taskId } = await stage.task(name());
      await stage.rows("insert into $s.tally_delta (task_id, succeeded) values ($1, 1)", [taskId]);
      return { sql: "select from $s.tally_delta" };
    },
    async releases() {
      const by = { release: releaseOf("2", []), graceMs: minuteMs };
      await stage.store.tasks.saveAll([defineTask(name(), {})], change(stage.nowMs), by);
      return { inMs: 2 * minuteMs, isAhead: true, sql: "select from $s.release where not settled" };
    },
  };

  it.each(Object.entries(appear))(
    "%s: once there is something, and the leader then sweeps it",
    async (sweep, happen) => {
      const { inMs = 0, isAhead = inMs === 0, sql } = await happen();
      expect((await reported())?.includes(sweep as Sweep), "at once").toBe(isAhead);
      expect(await stage.rows(sql)).toHaveLength(1);
      expect(await reported(inMs)).toContain(sweep);
      const unaware = await janitor(inMs);
      unaware.onPulse({ sweeps: sweeps.filter((other) => other !== sweep) });
      await unaware.stop();
      // Ended sessions are also swept with the rotation of the history.
      if (sweep !== "sessions") expect(await stage.rows(sql), "the other sweeps leave it").toHaveLength(1);
      const aware = await janitor(inMs);
      aware.onPulse({ sweeps: [sweep as Sweep] });
      await aware.stop();
      expect(await stage.rows(sql)).toEqual([]);
      // Tasks that were changed are swept for some minutes longer than a transaction may enqueue runs.
      if (sweep === "changedTasks") expect(await reported(enqueuingMs + 2 * minuteMs)).toContain(sweep);
      expect(await reported(inMs + (sweep === "changedTasks" ? 16 * minuteMs : 0))).not.toContain(sweep);
    },
  );

  it("historySizes: as long as a quota limits a history", async () => {
    const set = (history: number | null) =>
      stage.store.quotas.set("namespace", "n", { ...noLimits, history }, change(stage.nowMs));
    expect(await reported()).not.toContain("historySizes");
    await set(1_000_000);
    expect(await reported()).toContain("historySizes");
    await set(null);
    expect(await reported()).not.toContain("historySizes");
  });

  it("to the leader alone", async () => {
    expect(await reported(0, await stage.session())).toBeUndefined();
    expect((await stage.store.sessions.beat(leader, stage.nowMs)).sweeps, "unless it asks").toBeUndefined();
  });

  it("without a closer look at what is large: many changes of tasks, a large table of counters", async () => {
    const later = 20 * minuteMs;
    const names = Array.from({ length: 100 }, name);
    expect(await reported(later)).toEqual([]);
    await stage.store.tasks.saveAll(
      names.slice(1).map((each) => defineTask(each, {})),
      change(stage.nowMs + later),
      { release: releaseOf("2", []), graceMs: minuteMs },
    );
    expect(await reported(later), "99 new tasks").not.toContain("changedTasks");
    await stage.task(names[0] as string, {}, stage.nowMs + later);
    expect(await reported(later)).toContain("changedTasks");
    await stage.rows("insert into $s.tally_delta (task_id) select 1 from generate_series(1, 20000)");
    await stage.rows("delete from $s.tally_delta");
    expect(await reported(later)).toContain("counters");
    await stage.rows("truncate $s.tally_delta");
    expect(await reported(later)).not.toContain("counters");
  });
});
