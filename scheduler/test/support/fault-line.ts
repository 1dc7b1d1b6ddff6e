import { ZooKeeperProxy } from "../../../zookeeper/test/support/proxy.ts";
import { PausableClock } from "./pausable-clock.ts";
import { StoreProxy } from "./proxy.ts";

/** The faults of one process and its line to a service. */
export interface Faults {
  /** The process stands still: no timer fires and no byte arrives; its clock goes on, and `resume` lets all of it happen. */
  pause(): void;
  resume(): void;
  /** The process's connections transfer nothing any more, and none ends. */
  hang(): void;
  /** The process's connections break, and no new one can be made. */
  cut(): void;
  /** Ends `hang` and `cut`. */
  heal(): void;
}

/** A line of one process to one service. */
export interface FaultLine {
  /** The address to connect to instead of the service's. */
  readonly at: string;
  readonly clock: PausableClock;
  readonly faults: Faults;
  close(): Promise<void>;
}

/** A line to a PostgreSQL or a Redis. */
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

/** @param address host:port */
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
