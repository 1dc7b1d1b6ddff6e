import { Ensemble } from "../../../zookeeper/test/support/ensemble.ts";
import { countersIn, fourLetter } from "../../../zookeeper/test/support/four-letter.ts";
import { ZooKeeperProxy } from "../../../zookeeper/test/support/proxy.ts";
import { type Clock, systemClock } from "../../src/clock.ts";
import { openRedisWitness } from "../../src/coordination/redis.ts";
import { openZooKeeper } from "../../src/coordination/zookeeper.ts";
import type { Shown, Witness } from "../../src/witness.ts";
import { StoreProxy } from "./proxy.ts";
import { RedisServer } from "./redis-server.ts";

/** One technology that a witness can rest on. A driver passes the suite of witness.test.ts, or is none. */
export interface WitnessDriver {
  readonly title: string;
  open(): Promise<WitnessStage>;
}

export interface WitnessStage {
  /** As short as the service takes it. */
  readonly sessionTimeoutMs: number;
  /** One process's witness with a line of its own to the service; nothing is announced yet. */
  make(options?: { clusterId?: string; sessionTimeoutMs?: number }): Promise<WitnessMember>;
  /** Ends it without a farewell and starts it again where it was. What it remembers is its affair. */
  restartService(): Promise<void>;
  /** Everything that it keeps is lost, while it runs. */
  wipeService(): Promise<void>;
  /** From everybody so far, by the server's own count; a look adds at most one. */
  requests(): Promise<number>;
  close(): Promise<void>;
}

export interface WitnessMember {
  readonly witness: Witness;
  readonly log: readonly string[];
  /** The process stands still: no timer fires and no byte arrives; its clock goes on, and `resume` lets all of it happen. */
  pause(): void;
  resume(): void;
  /** Its connections break, and no new one can be made. */
  cut(): void;
  /** Its connections say nothing any more, and none ends. */
  hang(): void;
  /** Ends `cut` and `hang`. */
  heal(): void;
  /** Leaves, if its line allows. */
  close(): Promise<void>;
}

/** The system's clock, whose timers can be held back as a stopped process's are. */
export class PausableClock implements Clock {
  #held: (() => void)[] | undefined;

  monotonic(): number {
    return systemClock.monotonic();
  }

  wall(): number {
    return systemClock.wall();
  }

  after(ms: number, fire: () => void): () => void {
    let cancelled = false;
    const due = () => {
      if (cancelled) return;
      if (this.#held) this.#held.push(due);
      else fire();
    };
    const cancel = systemClock.after(ms, due);
    return () => {
      cancelled = true;
      cancel();
    };
  }

  pause(): void {
    this.#held ??= [];
  }

  resume(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const due of held) due();
  }
}

export function shownAs(sessionId: number, more: Partial<Shown> = {}): Shown {
  const node = `node-${sessionId}`;
  return { sessionId, node, role: "node", host: "here", pid: sessionId, version: "1", groups: ["default"], ...more };
}

const redis: WitnessDriver = {
  title: "Redis",
  async open() {
    const server = await RedisServer.start();
    const sessionTimeoutMs = 1_500;
    return {
      sessionTimeoutMs,
      async make(options = {}) {
        const proxy = await StoreProxy.before(server.url);
        const clock = new PausableClock();
        const end = new AbortController();
        const log: string[] = [];
        const witness = await openRedisWitness({
          url: proxy.url,
          clusterId: "cluster-a",
          sessionTimeoutMs,
          log: (line) => void log.push(line),
          signal: end.signal,
          clock,
          ...options,
        }).catch(async (error: unknown) => {
          await proxy.close();
          throw error;
        });
        return {
          witness,
          log,
          pause() {
            clock.pause();
            proxy.stall();
          },
          resume() {
            proxy.flow();
            clock.resume();
          },
          cut: () => proxy.cut({ refuse: true }),
          hang: () => proxy.hang(),
          heal: () => proxy.heal(),
          async close() {
            proxy.flow();
            clock.resume();
            await witness.leave();
            await proxy.close();
          },
        };
      },
      async restartService() {
        await server.kill();
        await server.up();
      },
      async wipeService() {
        await server.ask("FLUSHALL");
      },
      async requests() {
        const stats = String(await server.ask("INFO", "commandstats"));
        const calls = (name: string) => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
        // The others are called by the scripts: parts of one request.
        return calls("evalsha") + calls("eval") + calls("subscribe");
      },
      close: () => server.close(),
    };
  },
};

const zookeeper: WitnessDriver = {
  title: "ZooKeeper",
  async open() {
    const ensemble = await Ensemble.start({ servers: 1, tickTime: 200 });
    const sessionTimeoutMs = 1_500;
    return {
      sessionTimeoutMs,
      async make(options = {}) {
        const proxy = await ZooKeeperProxy.before(ensemble.server.address);
        const clock = new PausableClock();
        const log: string[] = [];
        const witness = await openZooKeeper({
          url: `zookeeper://${proxy.address}/suite`,
          clusterId: "cluster-a",
          sessionTimeoutMs,
          log: (line) => void log.push(line),
          signal: new AbortController().signal,
          clock,
          ...options,
        }).catch(async (error: unknown) => {
          await proxy[Symbol.asyncDispose]();
          throw error;
        });
        return {
          witness,
          log,
          pause() {
            clock.pause();
            proxy.pause();
          },
          resume() {
            proxy.resume();
            clock.resume();
          },
          cut() {
            proxy.refuse();
            proxy.reset();
          },
          hang: () => proxy.pause(),
          heal() {
            proxy.accept();
            proxy.resume();
          },
          async close() {
            proxy.accept();
            proxy.resume();
            clock.resume();
            await witness.leave();
            await proxy[Symbol.asyncDispose]();
          },
        };
      },
      async restartService() {
        await ensemble.server.restart();
      },
      async wipeService() {
        await ensemble.killAll();
        await ensemble.wipeAll();
        await ensemble.startAll();
      },
      async requests() {
        return countersIn(await fourLetter(ensemble.server.port, "mntr")).get("packets_received") ?? Number.NaN;
      },
      close: () => ensemble.stop(),
    };
  },
};

export const witnessDrivers: readonly WitnessDriver[] = [redis, zookeeper];
