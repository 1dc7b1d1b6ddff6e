/** The kinds of lock, each with the settings that its own docs recommend, or with comparable settings, which are stated here. */
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { setTimeout as pause } from "node:timers/promises";
import { type Carillon, carillon } from "carillon";
import { Redis } from "ioredis";
import pg from "pg";
import { type Order, type Party, patienceMs, ttlMs } from "./order.ts";

type Open = (order: Order) => Promise<Party>;

/** Peers are installed only in the node_modules of bench/, so their types are missing at compile time. */
const require = createRequire(import.meta.url);

/** A lock of Carillon's. Each process has one Carillon instance, as a user would have it, which neither plans nor executes runs. */
const ours =
  (coordination: (order: Order) => string | undefined, fair: boolean): Open =>
  async (order) => {
    const service = coordination(order);
    const tower: Carillon = carillon({
      store: order.postgres,
      schema: order.name,
      scheduler: false,
      worker: false,
      handleSignals: false,
      ...(service ? { coordination: service } : {}),
    });
    const lock = tower.lock("bench", { fair });
    return {
      async acquire() {
        const held = await lock.acquire();
        return () => held.release();
      },
      close: () => tower.stop(),
    };
  };

/** The usual simple lock: one Redis key that only its owner deletes. `wait` is the pause between two tries. */
const naive =
  (wait: () => Promise<unknown>): Open =>
  async ({ redis: url, name }) => {
    const redis = new Redis(url);
    const release = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
    return {
      async acquire() {
        const token = randomUUID();
        while ((await redis.set(name, token, "PX", ttlMs, "NX")) === null) await wait();
        return () => redis.eval(release, 1, name, token);
      },
      close: () => redis.quit(),
    };
  };

const peers: Record<string, Open> = {
  /** Default settings except the number of tries, because the default (10 tries, 200 ± 100 ms apart) would give up in this bench. */
  redlock: async ({ redis: url, name }) => {
    const Redlock = require("redlock") as new (
      clients: Redis[],
      options: object,
    ) => { lock(name: string, ttlMs: number): Promise<{ unlock(): Promise<unknown> }> };
    const redis = new Redis(url);
    const redlock = new Redlock([redis], { retryCount: -1 });
    return {
      async acquire() {
        const lock = await redlock.lock(name, ttlMs);
        return () => lock.unlock();
      },
      close: () => redis.quit(),
    };
  },
  /** Default settings (a try every 10 ms) except the longest wait for the lock, which is 60 s instead of 10 s. */
  "redis-semaphore": async ({ redis: url, name }) => {
    const { Mutex } = require("redis-semaphore") as {
      Mutex: new (
        client: Redis,
        name: string,
        options: object,
      ) => { acquire(): Promise<void>; release(): Promise<void> };
    };
    const redis = new Redis(url);
    return {
      async acquire() {
        const mutex = new Mutex(redis, name, { lockTimeout: ttlMs, acquireTimeout: patienceMs });
        await mutex.acquire();
        return () => mutex.release();
      },
      close: () => redis.quit(),
    };
  },
  /** Default settings except the number of tries and the pause between two tries, which is 10 ms instead of 50 ms. */
  "ioredis-lock": async ({ redis: url, name }) => {
    const { createLock } = require("@microfleet/ioredis-lock") as {
      createLock(
        client: Redis,
        options: object,
      ): { acquire(name: string): Promise<unknown>; release(): Promise<unknown> };
    };
    const redis = new Redis(url);
    return {
      async acquire() {
        const lock = createLock(redis, { timeout: ttlMs, retries: 10_000, delay: 10, jitter: 1.2 });
        await lock.acquire(name);
        return () => lock.release();
      },
      close: () => redis.quit(),
    };
  },
  /** Each contender has its own connection, because an advisory lock belongs to a connection. */
  "pg-advisory": async ({ postgres, name, contenders }) => {
    const clients = await Promise.all(
      Array.from({ length: contenders }, async () => {
        const client = new pg.Client({ connectionString: postgres });
        await client.connect();
        return client;
      }),
    );
    return {
      async acquire(contender) {
        const client = clients[contender] as pg.Client;
        await client.query("select pg_advisory_lock(hashtext($1))", [name]);
        return () => client.query("select pg_advisory_unlock(hashtext($1))", [name]);
      },
      close: () => Promise.all(clients.map((client) => client.end())),
    };
  },
};

export const peerNames = Object.keys(peers);

export const parties: Record<string, Open> = {
  postgres: ours(() => undefined, true),
  zookeeper: ours(({ zookeeper, name }) => `zookeeper://${zookeeper}/${name}`, true),
  "redis-back-off": ours(({ redis, name }) => `${redis}?prefix=${name}`, false),
  "redis-fair": ours(({ redis, name }) => `${redis}?prefix=${name}`, true),
  "naive-spin": naive(async () => undefined),
  "naive-sleep": naive(() => pause(50)),
  ...peers,
};
