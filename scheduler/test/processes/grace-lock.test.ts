/** Tests the grace lock with real processes that are killed, suspended for too long or started again, on both drivers. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Contention } from "../support/grace-lock-processes.ts";
import { postgres } from "../support/servers.ts";
import { openStage, type Stage, until } from "../support/store-stage.ts";

/** Session timeout in ms: a machine that delays a process for two seconds does not end its session. */
const timeoutMs = 4_000;
const graceMs = 1_000;
/** A grace time in ms that is longer than even a slow start of a process. */
const longMs = 60_000;
const patienceMs = 60_000;
const nsPerMs = 1_000_000n;

describe.each(["ZooKeeper", "PostgreSQL"] as const)("grace lock in %s, among processes", (driver) => {
  let stage: Stage;
  let contention: Contention;
  beforeEach(async () => {
    stage = await openStage(postgres());
    contention = new Contention(driver, stage, stage.schema, timeoutMs);
  });
  afterEach(async () => {
    await contention.close();
    await stage.close();
  });

  it("owner killed with -9: another contender gets the lock after the grace, and onTakenOver is called", async () => {
    const a = await contention.start("a", graceMs);
    await a.says("took");
    await contention.believes(a);
    const b = await contention.start("b", graceMs);
    const killedNs = process.hrtime.bigint();
    await a.kill();
    expect(await b.says("took")).toMatch(/^took \d+ a$/);
    await contention.believes(b);
    expect(contention.beliefs().map(({ pid }) => pid)).toEqual([a.pid, b.pid]);
    const [, taken] = contention.beliefs();
    expect(((taken?.firstNs ?? 0n) - killedNs) / nsPerMs).toBeGreaterThanOrEqual(graceMs - 5);
    expect(contention.overlaps()).toEqual([]);
  });

  it("owner stopped past session and grace: it stops believing in its lock before another owner begins", async () => {
    const a = await contention.start("a", graceMs);
    await a.says("took");
    await contention.believes(a);
    const b = await contention.start("b", graceMs);
    a.signal("SIGSTOP");
    await b.says("took");
    await contention.believes(b);
    a.signal("SIGCONT");
    await a.says("lost");
    expect(contention.beliefs().map(({ pid }) => pid)).toEqual([a.pid, b.pid]);
    expect(contention.overlaps()).toEqual([]);
  });

  it("owner stopped past its session, but not past the grace: it gets the lock back, under a new fence", async () => {
    const a = await contention.start("a", longMs);
    await a.says("took");
    await contention.believes(a);
    const b = await contention.start("b", longMs);
    a.signal("SIGSTOP");
    const stoppedMs = performance.now();
    await until("its session is over", () => performance.now() - stoppedMs > 2 * timeoutMs, patienceMs);
    a.signal("SIGCONT");
    await until("it has a new fence", () => contention.beliefs().length === 2, patienceMs);
    expect(contention.beliefs().map(({ pid }) => pid)).toEqual([a.pid, a.pid]);
    expect([a.said.length, b.said]).toEqual([2, ["ready"]]);
  });

  it("owner killed and restarted: it gets the lock first, and learns that its last use was interrupted", async () => {
    const a = await contention.start("a", longMs);
    await a.says("took");
    await contention.believes(a);
    const b = await contention.start("b", longMs);
    await a.kill();
    const again = await contention.start("a", longMs);
    expect(await again.says("took")).toMatch(/^took \d+ a$/);
    await contention.believes(again);
    expect(b.said).toEqual(["ready"]);
    expect(contention.overlaps()).toEqual([]);
  });
});
