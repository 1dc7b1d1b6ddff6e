import { ZooKeeperProxy } from "../../../zookeeper/test/support/proxy.ts";
import { PausableClock } from "./pausable-clock.ts";
import { StoreProxy } from "./proxy.ts";

/** Faults that a test can cause in one process and its connections to a service. */
export interface Faults {
  /**
   * Suspends the process: no timer fires and no byte arrives, but its clock advances. After `resume` the delayed timers fire and the bytes
   * arrive.
   */
  pause(): void;
  resume(): void;
  /** The process's connections transfer no byte any more, but stay open. */
  hang(): void;
  /** The process's connections break, and new ones are refused. */
  cut(): void;
  /** Ends the effect of `hang` and `cut`. */
  heal(): void;
}

/** The connection of one process to one service, through a proxy that can cause faults. */
export interface FaultLine {
  /** The address to which the process connects in place of the service's. */
  readonly at: string;
  readonly clock: PausableClock;
  readonly faults: Faults;
  close(): Promise<void>;
}

/** Starts a fault line before a PostgreSQL or a Redis. */
export async function lineBefore(url: string): Promise<FaultLine> {
  const proxy = await StoreProxy.before(url);
  const clock = new PausableClock();
  const faults: Faults = {
    pause() {
      clock.pause();
      proxy.stall();
    },
    resume() {
      proxy.flow();
      clock.resume();
    },
    hang: () => proxy.hang(),
    cut: () => proxy.cut({ refuse: true }),
    heal: () => proxy.heal(),
  };
  return { at: proxy.url, clock, faults, close: () => proxy.close() };
}

/** Starts a fault line before a ZooKeeper server. @param address the server's address as host:port */
export async function zooKeeperLineBefore(address: string): Promise<FaultLine> {
  const proxy = await ZooKeeperProxy.before(address);
  const clock = new PausableClock();
  const faults: Faults = {
    pause() {
      clock.pause();
      proxy.pause();
    },
    resume() {
      proxy.resume();
      clock.resume();
    },
    hang: () => proxy.pause(),
    cut() {
      proxy.refuse();
      proxy.reset();
    },
    heal() {
      proxy.accept();
      proxy.resume();
    },
  };
  return { at: proxy.address, clock, faults, close: () => proxy[Symbol.asyncDispose]() };
}
