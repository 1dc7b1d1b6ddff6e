import pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { checkServer } from "../../src/cli/nodes/checks.ts";
import type { ClockBack } from "../../src/cluster/clock-votes.ts";
import type { Membership } from "../../src/cluster/membership.ts";
import { joinCluster } from "../../src/coordination/membership.ts";
import { type Carillon, carillon } from "../../src/library/carillon.ts";
import type { Run } from "../../src/run/handler.ts";
import { every } from "../../src/schedule/schedule.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { inspectPostgres } from "../../src/store/postgres/runs/inspect.ts";
import type { Store } from "../../src/store/store.ts";
import { StoreClock } from "../../src/store/store-clock.ts";
import { SteppedStore } from "../support/stepped-store.ts";
import { numbers, recordingLog, until } from "../support/store-stage.ts";
import { WebhookReceiver } from "../support/webhook-receiver.ts";

const hourMs = 3_600_000;
const stepLastsMs = 15_000;

describe("a step of the store's clock", () => {
  let store: SteppedStore;
  let sql: pg.Pool;
  let hook: string;
  const receiver = new WebhookReceiver();
  const fired = new Map<string, number[]>();
  const firedBy = new Set<string>();
  const nodes: Carillon[] = [];
  const { log, lines } = recordingLog();
  const node = async (name: string) => {
    const tower = carillon({
      store: store.url,
      name,
      handleSignals: false,
      log,
      alarms: { channels: { ops: { webhook: hook, allow: ["127.0.0.0/8"] } }, summary: "2s" },
    });
    const note = ({ task, slot }: Run) => {
      fired.set(task, [...(fired.get(task) ?? []), slot?.getTime() ?? Number.NaN]);
      firedBy.add(name);
    };
    tower.task("quick", { schedule: every("100ms") }, note);
    tower.task("steady", { schedule: every("1s") }, note);
    nodes.push(tower);
    await tower.start();
    return tower;
  };
  const clusterMs = () => Date.now();
  const doctor = async () =>
    checkServer((await inspectPostgres(store.url, "carillon")).server, "here", "carillon").filter(
      ({ what }) => what === "store's clock" || what === "clock",
    );
  const alarmed = (kind: string) => receiver.kinds("clock").filter((one) => one === kind).length;
  const last = (task: string) => Math.max(...(fired.get(task) ?? []));
  /** Waits until all slots up to `ms` from now have fired by this machine's clock, even if the store's clock steps; fails 5 s later. */
  const firesFor = async (ms: number) => {
    const endMs = clusterMs() + ms;
    await until("slots to fire", () => last("quick") >= endMs && last("steady") >= endMs, ms + 5_000);
  };

  beforeAll(async () => {
    store = await SteppedStore.start();
    sql = new pg.Pool({ connectionString: store.url, types: numbers });
    hook = await receiver.listen();
    await Promise.all([node("first"), node("second")]);
    await until("slots fire", () => (fired.get("steady")?.length ?? 0) > 2);
    await until("both have beaten for a while", async () => {
      const { rows } = await sql.query("select min(beat) as beat from carillon.session where ended_ms is null");
      return rows[0].beat >= 3;
    });
  });
  afterAll(async () => {
    await Promise.all(nodes.map((tower) => tower.stop()));
    await sql.end();
    await store.close();
    await receiver.close();
  });

  it.each([
    ["forward by 2 h", 2 * hourMs, "2 h ahead of"],
    ["back by 1 h", -hourMs, "1 h behind"],
  ])("%s fires every slot once and on time, and raises an alarm within 5 s", async (_, stepMs, words) => {
    const [raised, cleared] = [alarmed("raised"), alarmed("cleared")];
    store.step(stepMs / 1_000);
    await until("the alarm", () => alarmed("raised") > raised);
    expect(receiver.posted.at(-1)?.body.text).toContain(
      `it is ${(Math.abs(stepMs) / 1_000).toFixed(1)} s ${stepMs > 0 ? "ahead of" : "behind"} cluster time`,
    );
    expect(await doctor()).toMatchObject([
      { what: "store's clock", verdict: "problem", found: expect.stringContaining(`it is ${words} cluster time`) },
      { what: "clock", verdict: "good" },
    ]);
    await firesFor(stepLastsMs);
    store.step(0);
    await firesFor(5_000);
    await until("all clear", () => alarmed("cleared") > cleared);
    expect(await doctor()).toMatchObject([{ what: "clock", verdict: "good" }]);
    for (const [task, everyMs] of [
      ["quick", 100],
      ["steady", 1_000],
    ] as const) {
      const slots = (fired.get(task) ?? []).toSorted((a, b) => a - b);
      expect(slots, `${task}: every slot once`).toEqual(slots.map((__, n) => (slots[0] as number) + n * everyMs));
    }
    const { rows } = await sql.query("select outcome, reason, slots from carillon.slot_range");
    expect(rows, "slots recorded as missed").toEqual([]);
    const { rows: plans } = await sql.query("select max(next_slot_ms) as next from carillon.plan");
    expect(Math.abs(plans[0].next - clusterMs())).toBeLessThan(60_000);
    // On a busy machine the store may be unreachable for a moment; the checks above show that all slots fired nevertheless.
    const right = ["the store's clock is", "the store is away"];
    const isOther = (message: string) => !right.some((start) => message.startsWith(start));
    expect(lines.filter(({ level, message }) => level === "error" && isOther(message))).toEqual([]);
  });
});

/** Tests memberships without schedulers or workers; each has simulated clocks that a test can step. */
describe("deciding which clock was stepped", () => {
  let server: SteppedStore;
  let store: Store;
  let sql: pg.Pool;
  const members: Member[] = [];

  class Member {
    /** How far this member's wall and monotonic clocks are ahead of the real clocks, in ms. */
    wallOffMs = 0;
    monoOffMs = 0;
    readonly recorded = recordingLog();
    readonly clock = {
      monotonic: () => systemClock.monotonic() + this.monoOffMs,
      wall: () => systemClock.wall() + this.wallOffMs,
      after: systemClock.after,
    };
    readonly storeClock = new StoreClock(this.clock);
    membership!: Membership;

    async join(node: string, role: "node" | "worker" = "node", clockBack: ClockBack = "wait"): Promise<this> {
      const identity = { node, role, host: "here", pid: process.pid, version: "0", timeoutMs: 6_000 };
      const { clock, storeClock } = this;
      const { log } = this.recorded;
      this.membership = await joinCluster({ store, clock, storeClock, identity, beatMs: 250, log, clockBack });
      members.push(this);
      return this;
    }

    /** Returns how far the member's estimate of the cluster's time is ahead of the real time, in ms. */
    aheadMs(): number {
      return this.storeClock.now() - Date.now();
    }

    told(words: string): boolean {
      return this.recorded.lines.some(({ message }) => message.includes(words));
    }
  }
  const join = (node: string, role?: "node" | "worker", clockBack?: ClockBack) =>
    new Member().join(node, role, clockBack);
  const found = async () => (await inspectPostgres(server.url, "carillon")).cluster?.timeBack;
  const shift = async () =>
    (await sql.query("select clock_shift_ms as ms, clock_number as number from carillon.cluster")).rows[0];
  const experienced = () =>
    until("all have beaten for a while", async () => {
      const { rows } = await sql.query("select min(beat) as beat from carillon.session where ended_ms is null");
      return rows[0].beat > 3;
    });
  /** True if the difference in ms is smaller than a clock step. */
  const isNear = (found: number, wanted: number) => Math.abs(found - wanted) < 400;

  beforeAll(async () => {
    server = await SteppedStore.start();
    store = await openPostgres({ url: server.url });
    sql = new pg.Pool({ connectionString: server.url, types: numbers });
  });
  afterEach(async () => {
    await Promise.all(members.splice(0).map(({ membership }) => membership.leave("stopped")));
    server.step(0);
    await sql.query("update carillon.cluster set clock_shift_ms = 0, clock_since_ms = null");
  });
  afterAll(async () => {
    await store.close();
    await sql.end();
    await server.close();
  });

  it("a node whose monotonic clock stopped follows the other nodes, and they do not follow it", async () => {
    const [a, b] = [await join("a"), await join("b")];
    await experienced();
    const before = await shift();
    b.monoOffMs -= hourMs;
    await until("it follows", () => isNear(b.aheadMs(), 0));
    expect(b.told("this machine's monotonic clock was wrong")).toBe(true);
    expect(await shift()).toEqual(before);
    expect(isNear(a.aheadMs(), 0)).toBe(true);
  });

  it("the majority of nodes decides, and a worker follows it", async () => {
    const all = [await join("a"), await join("b"), await join("c"), await join("w", "worker")] as const;
    await experienced();
    server.step(7_200);
    await until("the cluster goes on without the store's clock", async () => isNear((await shift()).ms, -2 * hourMs));
    await until("each knows", () => all.every((one) => one.told("the store's clock is 7200.0 s ahead of")));
    expect(all.map((one) => isNear(one.aheadMs(), 0))).toEqual([true, true, true, true]);
    server.step(0);
    await until("it came back", async () => (await shift()).ms === 0);
    expect(all.map((one) => isNear(one.aheadMs(), 0))).toEqual([true, true, true, true]);
  });

  it("a node that starts meanwhile gets the cluster's time; the wall clocks of most nodes adopt the store's", async () => {
    const [a, b] = [await join("a"), await join("b")];
    await experienced();
    server.step(-3_600);
    await until("the cluster goes on without the store's clock", async () => isNear((await shift()).ms, hourMs));
    const c = await join("c");
    expect(isNear(c.aheadMs(), 0)).toBe(true);
    a.wallOffMs = b.wallOffMs = -hourMs;
    await until("most agree with the store", async () => (await shift()).ms === 0);
    await until("all follow", () => [a, b, c].every((one) => isNear(one.aheadMs(), -hourMs)));
    await until("each says that what was planned lies ahead", () =>
      [a, b, c].every((one) => one.told("cluster time is 1.00 h behind what it has been: what was planned lies ahead")),
    );
    expect(Math.abs(((await found())?.reachedMs ?? 0) - Date.now()) < 60_000).toBe(true);
  });

  it("a lone node decides by its own wall clock: after machine sleep it adopts the store's time", async () => {
    const a = await join("a");
    const { number } = await shift();
    a.monoOffMs -= hourMs;
    await until("it follows", () => isNear(a.aheadMs(), 0));
    expect(await shift()).toEqual({ ms: 0, number: number + 1 });
    expect(a.told("it is adopted")).toBe(true);
  });

  it("a step back by a day while no node ran is logged and shown by doctor, with its time and size", async () => {
    const a = await join("a");
    await a.membership.leave("stopped");
    expect(await found()).toBeUndefined();
    const stoppedMs = Date.now();
    server.step(-86_400);
    await expect(join("strict", "node", "refuse")).rejects.toMatchObject({
      code: "CLOCK_BACK",
      message: expect.stringMatching(/^cluster time is \d\d\.\d\d h behind what it has been: .* fires until 20/),
    });
    const b = await join("b");
    await until("it says that what was planned lies ahead", () => b.told("h behind what it has been"));
    expect(b.recorded.lines.filter(({ message }) => message.includes("behind what it has been"))).toMatchObject([
      { level: "error", message: expect.stringContaining("wait, or plan from now on by `carillon clock replan`") },
    ]);
    const timeBack = await found();
    expect(Math.abs((timeBack?.reachedMs ?? 0) - stoppedMs) < 60_000).toBe(true);
    expect(Math.abs((timeBack?.sinceMs ?? 0) + 86_400_000 - stoppedMs) < 60_000).toBe(true);
    const change = { author: "ann", reason: "db-1 was a day ahead until today", nowMs: b.storeClock.now() };
    expect(await store.tasks.replanAhead(change)).toMatchObject({ reachedMs: timeBack?.reachedMs });
    expect(await found()).toEqual({ ...timeBack, replanned: true });
    await join("strict", "node", "refuse");
  });

  it("an operator adopts the step, which is in the audit log", async () => {
    const a = await join("a");
    server.step(7_200);
    await until("the cluster goes on without the store's clock", async () => isNear((await shift()).ms, -2 * hourMs));
    const change = { author: "ann", reason: "db-1 was behind until today", nowMs: a.storeClock.now() };
    expect(isNear(await store.sessions.adoptClock(change), 2 * hourMs)).toBe(true);
    expect(await store.sessions.adoptClock(change)).toBe(0);
    await until("it follows", () => isNear(a.aheadMs(), 2 * hourMs));
    const entries = await store.audit.list({ about: "cluster" }, Number.MAX_SAFE_INTEGER, 10);
    const adopted = entries.filter(({ act }) => act === "adopt clock");
    expect(adopted).toMatchObject([{ who: "ann", why: change.reason, after: { shiftMs: 0 } }]);
  });
});
