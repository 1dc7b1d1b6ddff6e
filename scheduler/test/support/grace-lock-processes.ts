/** Starts processes that contend for one grace lock, and reads the log in which they record when they believe that they hold the lock. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { zooKeeperServer } from "./grace-lock-stage.ts";
import { StoreProxy } from "./proxy.ts";
import { type Stage, until } from "./store-stage.ts";
import { wholeLines } from "./whole-lines.ts";

export type GraceLockDriver = "ZooKeeper" | "PostgreSQL";

const program = fileURLToPath(new URL("programs/grace-lock.mjs", import.meta.url));
const patienceMs = 60_000;

export class Child {
  readonly pid: number;
  readonly said: string[] = [];
  readonly #child: ChildProcess;

  constructor(child: ChildProcess) {
    this.#child = child;
    this.pid = child.pid as number;
    if (child.stdout) createInterface({ input: child.stdout }).on("line", (line) => this.said.push(line));
  }

  /**
   * Resolves with the first line of the process's output that begins with `begin`.
   * @throws if the process ends without such a line, or if none comes in time
   */
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

/**
 * The period in which a process believed that it held the lock under one fence, from its first to its last log line, by the monotonic clock
 * that all processes share.
 */
export interface Belief {
  readonly fence: bigint;
  readonly pid: number;
  readonly firstNs: bigint;
  readonly lastNs: bigint;
}

export class Contention {
  readonly #driver: GraceLockDriver;
  readonly #stage: Stage;
  readonly #name: string;
  readonly #timeoutMs: number;
  readonly #folder = mkdtempSync(join(tmpdir(), "carillon-grace-"));
  readonly #log = join(this.#folder, "beliefs");
  readonly #children: Child[] = [];
  readonly #proxies: StoreProxy[] = [];

  /**
   * @param name the name of the lock
   * @param timeoutMs the session timeout of the contenders
   */
  constructor(driver: GraceLockDriver, stage: Stage, name: string, timeoutMs: number) {
    this.#driver = driver;
    this.#stage = stage;
    this.#name = name;
    this.#timeoutMs = timeoutMs;
    writeFileSync(this.#log, "");
  }

  /** Starts a proxy before the lock's server, for use with `start`. */
  async proxy(): Promise<StoreProxy> {
    const zooKeeper = this.#driver === "ZooKeeper";
    const proxy = await StoreProxy.before(zooKeeper ? `zookeeper://${zooKeeperServer()}` : this.#stage.server.url);
    this.#proxies.push(proxy);
    return proxy;
  }

  /** Starts a contender. @param proxy a proxy through which the contender connects; default: none */
  async start(owner: string, graceMs: number, proxy?: StoreProxy): Promise<Child> {
    const zooKeeper = this.#driver === "ZooKeeper";
    const direct = zooKeeper ? zooKeeperServer() : this.#stage.server.url;
    const through = proxy && (zooKeeper ? new URL(proxy.url).host : proxy.url);
    const order = {
      driver: this.#driver,
      where: through ?? direct,
      schema: this.#stage.schema,
      path: `/${this.#name}`,
      owner,
      timeoutMs: this.#timeoutMs,
      graceMs,
      log: this.#log,
    };
    const env = { ...process.env, CARILLON_TEST_GRACE: JSON.stringify(order) };
    const child = new Child(spawn(process.execPath, [program], { env, stdio: ["ignore", "pipe", "inherit"] }));
    this.#children.push(child);
    await child.says("ready");
    return child;
  }

  /** Returns the beliefs of all processes, sorted by fence. */
  beliefs(): Belief[] {
    const spans = new Map<bigint, Belief>();
    for (const line of wholeLines(this.#log)) {
      const [atNs = 0n, fence = 0n, pid = 0n] = line.split(" ").map(BigInt);
      const span = spans.get(fence) ?? { fence, pid: Number(pid), firstNs: atNs, lastNs: atNs };
      if (span.pid !== Number(pid)) throw new Error(`fence ${fence} was given out twice`);
      const firstNs = atNs < span.firstNs ? atNs : span.firstNs;
      spans.set(fence, { ...span, firstNs, lastNs: atNs > span.lastNs ? atNs : span.lastNs });
    }
    return [...spans.values()].sort((a, b) => (a.fence < b.fence ? -1 : 1));
  }

  /** Returns the beliefs that began before the belief with the next smaller fence had ended. */
  overlaps(): string[] {
    const beliefs = this.beliefs();
    return beliefs.flatMap(({ fence, firstNs }, at) => {
      const before = beliefs[at - 1];
      return before && firstNs <= before.lastNs ? [`fence ${fence} beside ${before.fence}`] : [];
    });
  }

  async believes(child: Child): Promise<void> {
    await until(`process ${child.pid} believes`, () => this.beliefs().some(({ pid }) => pid === child.pid), patienceMs);
  }

  async close(): Promise<void> {
    await Promise.all(this.#children.splice(0).map((child) => child.kill()));
    await Promise.all(this.#proxies.splice(0).map((proxy) => proxy.close()));
    rmSync(this.#folder, { recursive: true });
  }
}
