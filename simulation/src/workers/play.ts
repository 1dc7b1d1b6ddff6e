import { randomBytes } from "node:crypto";
import pg from "pg";
import { hashOfSecret, makeSecret, tokenText } from "../../../scheduler/src/access/worker-key.ts";
import { type Client, client } from "../../../scheduler/src/api/client.ts";
import { pause, systemClock } from "../../../scheduler/src/base/clock.ts";
import { CarillonError, isCarillonError } from "../../../scheduler/src/base/errors.ts";
import { silentLog } from "../../../scheduler/src/base/log.ts";
import { Carillon } from "../../../scheduler/src/library/carillon.ts";
import { defineTask } from "../../../scheduler/src/task/task.ts";
import type { Violation } from "../history.ts";
import { Dice } from "../plan/dice.ts";
import { Claims } from "./claims.ts";
import { type Crew, RandomWorker, Wire } from "./crew.ts";
import { checkHistory } from "./history.ts";
import { OwnNode, ProcessNode, type ServerNode } from "./nodes.ts";

export interface Play {
  readonly url: string;
  readonly seed: number;
  readonly polls: number;
  /** True: servers are child processes that get SIGKILL; false: they run in this process. */
  readonly kill: boolean;
}

export interface Played {
  readonly polls: number;
  readonly claims: number;
  readonly downs: number;
  readonly statuses: Record<string, number>;
  readonly violations: readonly Violation[];
}

const tasks = {
  plain: {},
  again: { retry: { attempts: 4, delay: 0 } },
  link: {},
  publish: {},
  before: {},
  follower: { after: "before" },
} as const;
/** How often a server is asked, every 100 ms, before a missed revocation counts as a violation. */
const knownAfterTries = 600;
const silentAfterMs = 1_500;
const drainGuardMs = 300_000;
/** A server goes down each time after this many polls; in a shorter play, after half of the polls. */
const pollsPerDown = 400;

export async function play({ url, seed, polls, kill }: Play): Promise<Played> {
  const schema = `workers_${randomBytes(5).toString("hex")}`;
  const wire = new Wire();
  const server = (at: number) => {
    const options = { store: url, schema, name: `node-${at}` };
    return kill ? new ProcessNode(options) : new OwnNode(options, (node) => wire.cut(node));
  };
  const nodes = [server(0), server(1)];
  const tower = new Carillon({ store: url, schema, handleSignals: false, log: silentLog });
  const stage = new Stage(tower, { nodes, wire, claims: new Claims(), dice: new Dice(seed), next: counter() });
  try {
    await stage.open();
    await stage.run(polls);
    await stage.finish();
    const { claims } = stage.crew;
    await checkHistory(claims, () => stage.api());
    const downs = nodes.reduce((sum, node) => sum + node.downs, 0);
    const statuses = Object.fromEntries([...wire.statuses].map(([status, count]) => [String(status), count]));
    return { polls: wire.polls, claims: claims.all.size, downs, statuses, violations: claims.violations };
  } finally {
    await Promise.all(nodes.map((node) => node.end()));
    await tower.stop();
    const sql = new pg.Client({ connectionString: url });
    await sql.connect();
    await sql.query(`drop schema if exists ${schema} cascade`);
    await sql.end();
  }
}

function counter(): () => number {
  let n = 0;
  return () => ++n;
}

/** Two servers on one store, random workers, and an operator who cancels runs and revokes keys. */
class Stage {
  readonly crew: Crew;
  readonly #tower: Carillon;
  readonly #workers: RandomWorker[] = [];
  #token = "";
  #doomed = 0;

  constructor(tower: Carillon, crew: Crew) {
    this.#tower = tower;
    this.crew = crew;
  }

  async open(): Promise<void> {
    const { store } = await this.#tower.open();
    for (const [name, options] of Object.entries(tasks))
      await this.#tower.save(defineTask(name, { ...options, grace: "100ms" }));
    const change = { author: "operator", reason: "", nowMs: 1 };
    const user = await store.access.createUser({ name: "operator", hash: "none", role: "admin", grants: [] }, change);
    const secret = makeSecret();
    const token = {
      userId: user.userId,
      name: "all",
      hash: hashOfSecret(secret),
      role: "admin",
      scopes: null,
      namespaces: null,
      expiresMs: 9e12,
    } as const;
    this.#token = tokenText((await store.access.createToken(token, change)).tokenId, secret);
    for (const node of this.crew.nodes) await node.start();
    const [shared, other] = [await this.#key("shared"), await this.#key("other")];
    for (const [name, key, silent] of [
      ["a", shared, false],
      ["b", shared, false],
      ["c", other, false],
      ["d", other, true],
    ] as const)
      await this.#hire(name, key, silent);
  }

  api(node: ServerNode = this.#up()): Client {
    return client({ server: node.url as string, token: this.#token });
  }

  async run(polls: number): Promise<void> {
    const { wire } = this.crew;
    let isOver = false;
    const going = () => !isOver && wire.polls < polls;
    const work = async (at: number) => {
      for (let worker = this.#workers[at]; going() && worker; worker = this.#workers[at]) {
        if (worker.revoking) await this.#replace(at);
        else await worker.act(this.#strangers(worker));
      }
    };
    try {
      await Promise.all([
        ...this.#workers.map((_, at) => work(at)),
        this.#each(going, () => this.#supply()),
        this.#each(going, () => this.#meddle()),
        this.#crash(going, polls),
      ]);
    } finally {
      isOver = true;
    }
  }

  /** Lets all workers leave; then a last worker finishes the remaining runs. @throws TIMEOUT if they do not end */
  async finish(): Promise<void> {
    for (const worker of this.#workers) if (!worker.revoking) await worker.leave();
    const last = await this.#hire("last", await this.#key("last"), true);
    const fromMs = systemClock.monotonic();
    for (;;) {
      const left = await last.finish();
      const live =
        left > 0
          ? left
          : (await this.api().listRuns({ state: ["held", "ready", "claimed", "undecided", "paused"], limit: 5 })).items
              .length;
      if (live === 0) return;
      if (systemClock.monotonic() - fromMs > drainGuardMs)
        throw new CarillonError("TIMEOUT", `${live} runs do not end`);
    }
  }

  #up(): ServerNode {
    const { dice, nodes } = this.crew;
    return dice.one(nodes.filter(({ url }) => url !== undefined));
  }

  #strangers(worker: RandomWorker) {
    return this.#workers.flatMap((other) => (other === worker ? [] : other.mine.slice(-3)));
  }

  async #key(name: string): Promise<string> {
    return (await this.api().createWorkerKey({ name })).secret;
  }

  async #hire(name: string, key: string, silent: boolean): Promise<RandomWorker> {
    const worker = new RandomWorker(this.crew, { name, key, silentAfterMs: silent ? silentAfterMs : undefined });
    await worker.join();
    if (name !== "last") this.#workers.push(worker);
    return worker;
  }

  async #replace(at: number): Promise<void> {
    const name = `e-${this.#doomed++}`;
    await this.#asked(async () => {
      const worker = new RandomWorker(this.crew, { name, key: await this.#key(name), silentAfterMs: undefined });
      await worker.join();
      this.#workers[at] = worker;
    });
  }

  async #each(going: () => boolean, act: () => Promise<void>): Promise<void> {
    while (going()) {
      await this.#asked(act);
      await pause(systemClock, this.crew.dice.between(20, 60));
    }
  }

  /** Runs an operator's request, and ignores errors that a server's end or a concurrent change can cause. */
  async #asked(act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      // `cancelRun` waits until the worker has answered; random workers may never answer, so the wait ends with a timeout.
      if (error instanceof DOMException) return;
      const codes = ["SERVER_UNREACHABLE", "STOPPED", "RUN_STATE", "KEY_NAME_TAKEN", "RUN_UNKNOWN"] as const;
      if (!codes.some((code) => isCarillonError(error, code))) throw error;
    }
  }

  async #supply(): Promise<void> {
    const { dice } = this.crew;
    const task = () => dice.one(["plain", "again", "link", "link", "before"] as const);
    const keyed = () => (dice.chance(0.2) ? { key: `k-${dice.whole(1, 4)}` } : {});
    await this.api().enqueueRuns({
      runs: Array.from({ length: dice.whole(1, 5) }, () => ({ task: task(), ...keyed() })),
    });
  }

  /** With some chance, checks the keys of live runs, cancels a run of a worker, or revokes a worker's key. */
  async #meddle(): Promise<void> {
    const { dice } = this.crew;
    const at = dice.whole(0, this.#workers.length - 1);
    const worker = this.#workers[at] as RandomWorker;
    const claim = worker.mine.at(-1);
    if (dice.chance(0.1)) await this.#checkKeys();
    if (claim && dice.chance(0.3)) {
      claim.cancelling = true;
      await this.api().cancelRun({ run: claim.runId, reason: "enough" }, { signal: AbortSignal.timeout(500) });
    } else if (worker.name.startsWith("e-") ? dice.chance(0.05) : at === 0 && this.#doomed === 0)
      await this.#revoke(worker);
  }

  /**
   * Checks that no two of the runs that one answer to `listRuns` has (200 at most: held, ready or claimed) have the same task and
   * key.
   */
  async #checkKeys(): Promise<void> {
    const state = ["held", "ready", "claimed"] as const;
    const { items } = await this.api().listRuns({ state: [...state], limit: 200 });
    const keyed = items.flatMap(({ task, key, run }) => (key === null ? [] : [{ name: `${task} ${key}`, run }]));
    for (const { name, run } of keyed) {
      const twin = keyed.find((other) => other.name === name && other.run !== run);
      if (twin) this.crew.claims.broken("one live run of a key", `${name}: runs ${run} and ${twin.run}`);
    }
  }

  async #revoke(worker: RandomWorker): Promise<void> {
    const node = this.#up();
    const { downs } = node;
    const key = worker.name.startsWith("e-") ? worker.name : "shared";
    for (const other of this.#workers.filter((one) => one.key === worker.key)) {
      other.revoking = true;
      other.doubt();
    }
    await this.api(node).revokeWorkerKey({ key, reason: "leaked" });
    if (node.downs === downs) worker.revokedAt.add(node);
    await worker.probe(node);
    // Every server, not only the one that revoked the key, must refuse it in the end.
    for (const other of this.crew.nodes) {
      let tries = 0;
      while (other.url !== undefined && ![0, 401].includes(await worker.probe(other))) {
        if (++tries > knownAfterTries)
          return this.crew.claims.broken("a key that is revoked is refused", "a server does not come to know of it");
        await pause(systemClock, 100);
      }
    }
  }

  /** Ends a random server at intervals and restarts it; the other server stays up. */
  async #crash(going: () => boolean, polls: number): Promise<void> {
    const { dice, nodes, wire } = this.crew;
    const every = Math.min(pollsPerDown, polls / 2);
    for (let next = every; going(); await pause(systemClock, 20)) {
      if (wire.polls < next) continue;
      next += every;
      const node = dice.one(nodes);
      await node.end();
      await pause(systemClock, dice.between(0, 300));
      await node.start();
    }
  }
}
