import { setTimeout as pause } from "node:timers/promises";
import { connect, isZooKeeperError, type Stat, type ZooKeeper } from "@carillon/zookeeper";
import { machineMs } from "./notes.ts";
import type { Node } from "./store-watch.ts";

const everyMs = 25;

interface Seen {
  readonly node: Node;
  readonly czxid: bigint;
  seenMs: number;
}

/** Polls the nodes of locks. A node counts as present from the first to the last poll that showed it. */
export class ZooKeeperWatch {
  readonly #zk: ZooKeeper;
  readonly #root: string;
  readonly #over = new AbortController();
  readonly #seen = new Map<string, Seen>();
  #going: Promise<void> = Promise.resolve();
  longestGapMs = 0;

  private constructor(zk: ZooKeeper, root: string) {
    this.#zk = zk;
    this.#root = root;
  }

  /** Connects and starts to poll. @param root the cluster's path in ZooKeeper */
  static async open(servers: string, root: string): Promise<ZooKeeperWatch> {
    const watch = new ZooKeeperWatch(await connect(servers), root);
    watch.#going = watch.#watch();
    return watch;
  }

  async #watch(): Promise<void> {
    let lookedMs = machineMs();
    while (!this.#over.signal.aborted) {
      const atMs = machineMs();
      await this.#look(atMs).catch((error) => {
        if (!isZooKeeperError(error, "CONNECTION_LOSS", "SESSION_EXPIRED", "NO_NODE")) throw error;
      });
      const nowMs = machineMs();
      this.longestGapMs = Math.max(this.longestGapMs, nowMs - lookedMs);
      lookedMs = atMs;
      await pause(everyMs);
    }
  }

  /** Polls once. @param atMs the time just before the poll */
  async #look(atMs: number): Promise<void> {
    const ledger = `${this.#root}/locks/ledger`;
    const { names } = await this.#zk.children(ledger);
    for (const name of names) await this.#see(`${ledger}/${name}`, "ledger", atMs);
    await this.#see(`${this.#root}/grace-locks/nightly/holder`, "nightly", atMs);
  }

  async #see(path: string, lock: string, atMs: number): Promise<void> {
    const stat: Stat | undefined = await this.#zk.exists(path);
    if (!stat) return;
    const key = `${path} ${stat.czxid}`;
    const known = this.#seen.get(key);
    if (known) {
      known.seenMs = atMs;
      return;
    }
    // For the plain lock the node's name contains only the lower half of the fence; the store issues the upper half.
    const fence = lock === "nightly" ? Number(stat.czxid) : Number(/(\d{10})$/.exec(path)?.[1] ?? Number.NaN);
    const session = stat.ephemeralOwner.toString(16);
    const node: Node = {
      lock,
      fence,
      session,
      givenMs: machineMs(),
      endedMs: null,
      owner: null,
      half: lock === "ledger",
    };
    this.#seen.set(key, { node, czxid: stat.czxid, seenMs: atMs });
  }

  /** Stops polling. @returns the nodes in the order in which ZooKeeper created them */
  async close(): Promise<Node[]> {
    this.#over.abort();
    await this.#going;
    const lastMs = Math.max(0, ...[...this.#seen.values()].map(({ seenMs }) => seenMs));
    await this.#zk.close();
    return [...this.#seen.values()]
      .sort((a, b) => (a.czxid < b.czxid ? -1 : 1))
      .map(({ node, seenMs }) => ({ ...node, endedMs: seenMs < lastMs ? seenMs : null }));
  }
}
