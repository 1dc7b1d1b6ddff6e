import type { ZooKeeper } from "../../src/index.ts";
import { LeaderLatch } from "../../src/recipes/leader-latch.ts";
import { Mutex } from "../../src/recipes/mutex.ts";
import { until } from "../recipes/stage.ts";
import { Promises } from "./promises.ts";

interface Actor {
  readonly name: string;
  readonly zk: ZooKeeper;
  readonly latch: LeaderLatch;
  readonly mutex: Mutex;
  /** How often it has held the mutex. */
  held: number;
}

/**
 * Contenders of one process, each with a client of its own, at work all the time: a leader latch, a mutex taken again and
 * again, plain creates and reads. They share a clock, so at any moment all their beliefs can be compared; what must not
 * be is written down in `wrong`.
 */
export class Cast {
  readonly wrong: string[] = [];
  readonly fences = { leadership: [] as bigint[], mutex: [] as bigint[] };
  readonly path: string;
  readonly #actors: Actor[] = [];
  readonly #promises = new Promises();
  readonly #stop = new AbortController();
  readonly #running: Promise<void>[] = [];
  readonly #holders = new Set<string>();
  /** Paths whose create was answered, and those whose outcome is in doubt. */
  readonly #made = new Set<string>();
  #lastLeader = "";
  /** In which data is kept; undefined while it is being lost. */
  #era: symbol | undefined = Symbol("from the start");

  /** @param path does not exist yet */
  constructor(path: string) {
    this.path = path;
  }

  async start(clients: readonly ZooKeeper[]): Promise<void> {
    await clients[0]?.create(this.path);
    await clients[0]?.create(`${this.path}/items`);
    for (const [index, zk] of clients.entries()) {
      const name = `actor-${index}`;
      const latch = new LeaderLatch(zk, `${this.path}/latch`, { id: name });
      const actor: Actor = { name, zk, latch, mutex: new Mutex(zk, `${this.path}/mutex`), held: 0 };
      this.#actors.push(actor);
      latch.listen({ isLeader: ({ fence }) => this.#leads(actor, fence) });
      await latch.start();
      this.#running.push(this.#lock(actor), this.#ask(actor));
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

  /** Of this moment. */
  get leaders(): readonly string[] {
    return this.#actors.filter(({ latch }) => latch.hasLeadership).map(({ name }) => name);
  }

  /** After a fault has ended, within a bound: one leads, everyone is served, everyone has held the mutex again. */
  async calm(limitMs = 45_000): Promise<void> {
    await until("every client has a session", () => this.#actors.every(({ zk }) => zk.session.live), limitMs);
    await until("one leads", () => this.leaders.length === 1, limitMs);
    const held = this.#actors.map((actor) => actor.held);
    await until("each has held the mutex", () => this.#actors.every((a, i) => a.held > (held[i] ?? 0)), limitMs);
    await until("all stand in line once", async () => {
      const line = await this.#actors[0]?.latch.participants();
      return line?.length === this.#actors.length && line[0]?.id === this.leaders[0];
    });
  }

  /** Stops everyone, and holds that every promise has settled and that what was answered was done. */
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

  /** While something runs that loses the service's data: what was answered before its end is not asked for. */
  async forgetting(run: () => Promise<void>): Promise<void> {
    this.#era = undefined;
    await run();
    this.#made.clear();
    this.#era = Symbol("after the loss");
  }

  #leads(actor: Actor, fence: bigint): void {
    const others = this.leaders.filter((name) => name !== actor.name);
    if (others.length > 0) this.wrong.push(`${actor.name} leads while ${others} believe they do`);
    const last = this.fences.leadership.at(-1) ?? 0n;
    const again = fence === last && actor.name === this.#lastLeader; // after a short loss of the connection
    if (fence <= last && !again) this.wrong.push(`${actor.name} leads with fence ${fence} after ${last}`);
    this.fences.leadership.push(fence);
    this.#lastLeader = actor.name;
  }

  /** Between the events. */
  async #look(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const { leaders } = this;
      if (leaders.length > 1) this.wrong.push(`${leaders} lead at once`);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }

  async #lock(actor: Actor): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const outcome = await this.#promises.of("acquire", actor.mutex.acquire({ signal }));
      if ("code" in outcome) {
        await new Promise((resolve) => setTimeout(resolve, 10));
        continue;
      }
      const held = outcome.value;
      const last = this.fences.mutex.at(-1) ?? 0n;
      if (held.fence <= last) this.wrong.push(`${actor.name} holds the mutex with fence ${held.fence} after ${last}`);
      this.fences.mutex.push(held.fence);
      for (const other of this.#holders) this.wrong.push(`${actor.name} holds the mutex while ${other} believes so`);
      this.#holders.add(actor.name);
      held.signal.addEventListener("abort", () => this.#holders.delete(actor.name), { once: true });
      await new Promise((resolve) => setTimeout(resolve, 5));
      if (held.held) {
        actor.held++;
        await this.#promises.of("release", held.release());
      }
      this.#holders.delete(actor.name);
    }
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
