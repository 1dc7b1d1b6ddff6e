/** The grace lock among real processes: killed, stopped for too long, started again. On both drivers. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { zooKeeperServer } from "../support/grace-lock-stage.ts";
import { postgres } from "../support/servers.ts";
import { openStage, type Stage, until } from "../support/store-stage.ts";
import { wholeLines } from "../support/whole-lines.ts";

const program = fileURLToPath(new URL("../support/programs/grace-lock.mjs", import.meta.url));
/** A machine that gives a process no turn for two seconds does not end its session. */
const timeoutMs = 4_000;
const graceMs = 1_000;
/** A grace that no slow start of a process outlasts. */
const longMs = 60_000;
const patienceMs = 60_000;
const nsPerMs = 1_000_000n;

class Child {
  readonly pid: number;
  readonly said: string[] = [];
  readonly #child: ChildProcess;

  constructor(child: ChildProcess) {
    this.#child = child;
    this.pid = child.pid as number;
    if (child.stdout) createInterface({ input: child.stdout }).on("line", (line) => this.said.push(line));
  }

  /** Waits until it has printed a line with this beginning. */
  async says(begin: string): Promise<string> {
    const line = () => this.said.find((one) => one.startsWith(begin));
    await until(`process ${this.pid} says ${begin}`, () => line() !== undefined || !this.alive, patienceMs);
    const found = line();
    if (found === undefined) throw new Error(`it ended, having said ${this.said.join(", ")}`);
    return found;
  }

  get alive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async kill(): Promise<void> {
    if (!this.alive) return;
    const gone = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await gone;
  }
}

describe.each(["ZooKeeper", "PostgreSQL"])("grace lock in %s, among processes", (driver) => {
  let folder: string;
  let log: string;
  let stage: Stage;
  const children: Child[] = [];
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "carillon-grace-"));
    log = join(folder, "beliefs");
    writeFileSync(log, "");
    stage = await openStage(postgres());
  });
  afterEach(async () => {
    await Promise.all(children.splice(0).map((child) => child.kill()));
    await stage.close();
    rmSync(folder, { recursive: true });
  });

  async function start(owner: string, ownGraceMs = graceMs): Promise<Child> {
    const where = driver === "ZooKeeper" ? zooKeeperServer() : stage.server.url;
    const order = {
      driver,
      where,
      schema: stage.schema,
      path: `/${stage.schema}`,
      owner,
      timeoutMs,
      graceMs: ownGraceMs,
      log,
    };
    const env = { ...process.env, CARILLON_TEST_GRACE: JSON.stringify(order) };
    const child = new Child(spawn(process.execPath, [program], { env, stdio: ["ignore", "pipe", "inherit"] }));
    children.push(child);
    await child.says("ready");
    return child;
  }

  /** First and last belief of each fence, in the order of fences; they must not overlap. */
  function beliefs(): { fence: bigint; pid: number; firstNs: bigint; lastNs: bigint }[] {
    const spans = new Map<bigint, { fence: bigint; pid: number; firstNs: bigint; lastNs: bigint }>();
    for (const line of wholeLines(log)) {
      const [atNs = 0n, fence = 0n, pid = 0n] = line.split(" ").map(BigInt);
      const span = spans.get(fence) ?? { fence, pid: Number(pid), firstNs: atNs, lastNs: atNs };
      if (span.pid !== Number(pid)) throw new Error(`fence ${fence} was given out twice`);
      if (atNs < span.firstNs) span.firstNs = atNs;
      if (atNs > span.lastNs) span.lastNs = atNs;
      spans.set(fence, span);
    }
    return [...spans.values()].sort((a, b) => (a.fence < b.fence ? -1 : 1));
  }

  function expectDisjoint(): void {
    for (const [at, span] of beliefs().entries()) {
      const before = beliefs()[at - 1];
      if (before) expect(span.firstNs, `fence ${span.fence} beside ${before.fence}`).toBeGreaterThan(before.lastNs);
    }
  }

  const believes = (child: Child) =>
    until(`process ${child.pid} believes`, () => beliefs().some(({ pid }) => pid === child.pid), patienceMs);

  it("owner killed with -9: another has it after the grace, and is told", async () => {
    const a = await start("a");
    await a.says("took");
    await believes(a);
    const b = await start("b");
    const killedNs = process.hrtime.bigint();
    await a.kill();
    expect(await b.says("took")).toMatch(/^took \d+ a$/);
    await believes(b);
    expect(beliefs().map(({ pid }) => pid)).toEqual([a.pid, b.pid]);
    const [, taken] = beliefs();
    expect(((taken?.firstNs ?? 0n) - killedNs) / nsPerMs).toBeGreaterThanOrEqual(graceMs - 5);
    expectDisjoint();
  });

  it("owner stopped past session and grace: its belief is over before another's begins, also when it goes on", async () => {
    const a = await start("a");
    await a.says("took");
    await believes(a);
    const b = await start("b");
    a.signal("SIGSTOP");
    await b.says("took");
    await believes(b);
    a.signal("SIGCONT");
    await a.says("lost");
    expect(beliefs().map(({ pid }) => pid)).toEqual([a.pid, b.pid]);
    expectDisjoint();
  });

  it("owner stopped past its session, but not past the grace: it has it back, under a new fence", async () => {
    const a = await start("a", longMs);
    await a.says("took");
    await believes(a);
    const b = await start("b", longMs);
    a.signal("SIGSTOP");
    const stoppedMs = performance.now();
    await until("its session is over", () => performance.now() - stoppedMs > 2 * timeoutMs, patienceMs);
    a.signal("SIGCONT");
    await until("it has a new fence", () => beliefs().length === 2, patienceMs);
    expect(beliefs().map(({ pid }) => pid)).toEqual([a.pid, a.pid]);
    expect([a.said.length, b.said]).toEqual([2, ["ready"]]);
  });

  it("owner killed and started again: it has the lock first, and learns that it was cut off", async () => {
    const a = await start("a", longMs);
    await a.says("took");
    await believes(a);
    const b = await start("b", longMs);
    await a.kill();
    const again = await start("a", longMs);
    expect(await again.says("took")).toMatch(/^took \d+ a$/);
    await believes(again);
    expect(b.said).toEqual(["ready"]);
    expectDisjoint();
  });
});
