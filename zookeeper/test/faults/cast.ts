import type { ZooKeeper } from "../../src/index.ts";
import { LeaderLatch } from "../../src/recipes/leader/latch.ts";
import type { Held } from "../../src/recipes/locks/hold.ts";
import { Mutex } from "../../src/recipes/locks/mutex.ts";
import { ReadWriteLock } from "../../src/recipes/locks/read-write-lock.ts";
import { Semaphore } from "../../src/recipes/locks/semaphore.ts";
import { until } from "../recipes/stage.ts";
import { Promises } from "./promises.ts";

interface Actor {
  readonly name: string;
  readonly zk: ZooKeeper;
  readonly latch: LeaderLatch;
  /** How often the contender has held each lock. */
  readonly held: Map<string, number>;
}

/** A lock or lease that contenders take and release repeatedly. */
interface Prize {
  readonly name: string;
  acquire(signal: AbortSignal): Promise<Held>;
  /** The locks that this lock excludes or limits, each with the number of other holders that it may have while this lock is held. */
  readonly beside: ReadonlyMap<string, number>;
}

const permits = 2;

function prizesOf(zk: ZooKeeper, path: string): readonly Prize[] {
  const mutex = new Mutex(zk, `${path}/mutex`);
  const { read, write } = new ReadWriteLock(zk, `${path}/read-write`);
  const semaphore = new Semaphore(zk, `${path}/semaphore`, permits);
  const alone = (...names: string[]) => new Map(names.map((name) => [name, 0]));
  return [
    { name: "mutex", acquire: (signal) => mutex.acquire({ signal }), beside: alone("mutex") },
    { name: "read", acquire: (signal) => read.acquire({ signal }), beside: alone("write") },
    { name: "write", acquire: (signal) => write.acquire({ signal }), beside: alone("read", "write") },
    {
      name: "semaphore",
      acquire: (signal) => semaphore.acquire({ signal }),
      beside: new Map([["semaphore", permits - 1]]),
    },
  ];
}

/**
 * Contenders in one process, each with its own client, which work all the time: each takes part in a leader election, takes and releases a
 * mutex, both sides of a read-write lock and a semaphore, and creates and reads nodes. Because all run in one process, the test can check
 * at any moment which of them believe that they lead or hold a lock. Violations are recorded in `wrong`.
 */
export class Cast {
  readonly wrong: string[] = [];
  /** The fences of the latch (`leadership`) and of the locks that only one contender may hold, in order. */
  readonly fences = new Map<string, bigint[]>(["leadership", "mutex", "write"].map((name) => [name, []]));
  readonly path: string;
  readonly #actors: Actor[] = [];
  readonly #promises = new Promises();
  readonly #stop = new AbortController();
  readonly #running: Promise<void>[] = [];
  readonly #holders = new Map<string, Map<Held, Actor>>();
  /** Names of the items whose creation was answered. */
  readonly #made = new Set<string>();
  #lastLeader = "";
  /** Identifies the time since the last loss of data; undefined while data is being lost. */
  #era: symbol | undefined = Symbol("from the start");

  /** @param path a path that does not exist yet */
  constructor(path: string) {
    this.path = path;
  }

  async start(clients: readonly ZooKeeper[]): Promise<void> {
    await clients[0]?.create(this.path);
    await clients[0]?.create(`${this.path}/items`);
    for (const [index, zk] of clients.entries()) {
      const name = `actor-${index}`;
      const latch = new LeaderLatch(zk, `${this.path}/latch`, { id: name });
      const actor: Actor = { name, zk, latch, held: new Map() };
      this.#actors.push(actor);
      latch.listen({ isLeader: ({ fence }) => this.#leads(actor, fence) });
      await latch.start();
      for (const prize of prizesOf(zk, this.path)) this.#running.push(this.#hold(actor, prize));
      this.#running.push(this.#ask(actor));
    }
    this.#running.push(this.#look());
  }

  get sessions(): readonly bigint[] {
    return this.#actors.map(({ zk }) => zk.session.id);
  }

  get clients(): readonly ZooKeeper[] {
    return this.#actors.map(({ zk }) => zk);
  }

  get ended(): boolean {
    return this.#stop.signal.aborted;
  }

  lastFence(name: string): bigint {
    return this.fences.get(name)?.at(-1) ?? 0n;
  }

  /** The names of the contenders that lead at this moment according to their latches. */
  get leaders(): readonly string[] {
    return this.#actors.filter(({ latch }) => latch.hasLeadership).map(({ name }) => name);
  }

  /**
   * Waits after a fault until every client has a session, exactly one contender leads, every contender has held every lock again, and the
   * latch's queue contains every contender once, the leader first. @throws if one of these takes longer than its limit
   */
  async calm(limitMs = 60_000): Promise<void> {
    await until("every client has a session", () => this.#actors.every(({ zk }) => zk.session.live), limitMs);
    await until("one leads", () => this.leaders.length === 1, limitMs);
    const before = this.#actors.map(({ held }) => new Map(held));
    const again = ({ held }: Actor, index: number) =>
      [...held].every(([name, times]) => times > (before[index]?.get(name) ?? 0));
    await until("each has held everything again", () => this.#actors.every(again), limitMs);
    await until("all stand in line once", async () => {
      const line = await this.#actors[0]?.latch.participants();
      return line?.length === this.#actors.length && line[0]?.id === this.leaders[0];
    });
  }

  /**
   * Stops all contenders. If items whose creation was answered do not exist, they are recorded in `wrong`.
   * @throws if a promise does not settle, or rejects with an error other than a ZooKeeperError
   */
  async end(): Promise<void> {
    this.#stop.abort();
    await this.#promises.settled();
    await Promise.all(this.#running);
    await Promise.all(this.#actors.map(({ latch }) => latch.close()));
    const { names } = (await this.#actors[0]?.zk.children(`${this.path}/items`)) ?? { names: [] };
    const there = new Set(names);
    const lost = [...this.#made].filter((name) => !there.has(name));
    if (lost.length > 0) this.wrong.push(`answered, but not there: ${lost.slice(0, 5)}`);
  }

  /** Runs `run`, in which the service loses its data. Items that were created before `run` ends are no longer expected. */
  async forgetting(run: () => Promise<void>): Promise<void> {
    this.#era = undefined;
    await run();
    this.#made.clear();
    this.#era = Symbol("after the loss");
  }

  #leads(actor: Actor, fence: bigint): void {
    const others = this.leaders.filter((name) => name !== actor.name);
    if (others.length > 0) this.wrong.push(`${actor.name} leads while ${others} believe they do`);
    const last = this.lastFence("leadership");
    const again = fence === last && actor.name === this.#lastLeader; // the same leader again after a short loss of the connection
    if (fence <= last && !again) this.wrong.push(`${actor.name} leads with fence ${fence} after ${last}`);
    this.fences.get("leadership")?.push(fence);
    this.#lastLeader = actor.name;
  }

  /** Checks every 2 ms that at most one contender leads. */
  async #look(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const { leaders } = this;
      if (leaders.length > 1) this.wrong.push(`${leaders} lead at once`);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }

  async #hold(actor: Actor, prize: Prize): Promise<void> {
    const { signal } = this.#stop;
    actor.held.set(prize.name, 0);
    while (!signal.aborted) {
      const outcome = await this.#promises.of(`${actor.name} acquires ${prize.name}`, prize.acquire(signal));
      if ("code" in outcome) {
        await new Promise((resolve) => setTimeout(resolve, 10));
        continue;
      }
      const held = outcome.value;
      if (held.held) this.#begins(actor, prize, held);
      await new Promise((resolve) => setTimeout(resolve, 5));
      if (held.held) {
        actor.held.set(prize.name, (actor.held.get(prize.name) ?? 0) + 1);
        await this.#promises.of(`${actor.name} releases ${prize.name}`, held.release());
      }
      this.#holders.get(prize.name)?.delete(held);
    }
  }

  #begins(actor: Actor, { name, beside }: Prize, held: Held): void {
    for (const [other, limit] of beside) {
      const believing = [...(this.#holders.get(other) ?? [])].filter(([one]) => one.held).map(([, { name }]) => name);
      if (believing.length > limit) this.wrong.push(`${actor.name} holds ${name} while ${believing} hold ${other}`);
    }
    const holders = this.#holders.get(name) ?? new Map<Held, Actor>();
    this.#holders.set(name, holders.set(held, actor));
    const fences = this.fences.get(name);
    const last = this.lastFence(name);
    if (fences && held.fence <= last) this.wrong.push(`${actor.name} holds ${name} with ${held.fence} after ${last}`);
    fences?.push(held.fence);
  }

  async #ask({ name, zk }: Actor): Promise<void> {
    const one = async (index: number) => {
      const item = `${name}-${index}`;
      const era = this.#era;
      const created = zk.create(`${this.path}/items/${item}`, "x");
      const outcome = await this.#promises.of(`create ${item}`, created);
      if ("value" in outcome && era && era === this.#era) this.#made.add(item);
      const read = await this.#promises.of(`exists ${item}`, zk.exists(`${this.path}/items/${item}`));
      const missing = "value" in read && read.value === undefined;
      if (missing && era === this.#era && this.#made.has(item)) this.wrong.push(`${item} was made and is not there`);
    };
    for (let index = 0; !this.#stop.signal.aborted; index++) {
      void one(index);
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
  }
}
