import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import { type Books, type ContenderModule, moduleOf, type Order } from "./contender.ts";
import { Entrant } from "./entrant.ts";
import { tellRedis } from "./redis.ts";

const lookMs = 20;
const patienceMs = 120_000;

/** The resources of one contender in one measurement: its own database, an empty Redis, and its processes. */
export class Arena {
  readonly who: string;
  /** The URL of the contender's database. */
  readonly url: string;
  readonly client: pg.Client;
  readonly books: Books;
  readonly #order: Omit<Order, "role">;
  readonly #entrants: Entrant[] = [];
  readonly #server: string;

  private constructor(order: Omit<Order, "role">, client: pg.Client, module: ContenderModule, server: string) {
    this.who = order.who;
    this.url = order.postgres;
    this.client = client;
    this.#order = order;
    this.#server = server;
    this.books = module.books(order, async <Row>(text: string) => (await client.query(text)).rows as Row[]);
  }

  static async open(given: Pick<Order, "who" | "profile" | "history" | "durability" | "alarms">): Promise<Arena> {
    const server = variable("CARILLON_BENCH_POSTGRES_URL");
    const redis = process.env.CARILLON_BENCH_REDIS_URL ?? "";
    if (given.who === "bullmq") await tellRedis(redis, "FLUSHALL");
    const database = `bench_${process.pid}_${given.who.replaceAll("-", "_")}`;
    await once(server, `drop database if exists ${database} with (force)`, `create database ${database}`, "checkpoint");
    const url = new URL(server);
    url.pathname = `/${database}`;
    const client = new pg.Client({ connectionString: url.href });
    await client.connect();
    return new Arena({ ...given, postgres: url.href, redis }, client, await moduleOf(given.who), server);
  }

  async enter(role: Order["role"]): Promise<Entrant> {
    const entrant = await Entrant.enter({ ...this.#order, role });
    this.#entrants.push(entrant);
    return entrant;
  }

  /** Waits until the processes `by` have together handled at least `count` runs. @throws after the time limit */
  async handled(by: Entrant[], count: number, everyMs = lookMs): Promise<void> {
    const done = async () => {
      const counts = await Promise.all(by.map((entrant) => entrant.ask("handled")));
      return counts.reduce((a, b) => a + b, 0) >= count;
    };
    await this.#until(`${count} to be handled`, everyMs, done);
  }

  /** Waits until the contender's own tables hold at most `left` unfinished runs; throws after the time limit. */
  async acknowledged(left = 0, everyMs = lookMs): Promise<void> {
    await this.#until("its tables to be empty", everyMs, async () => (await this.books.left()) <= left);
  }

  async #until(what: string, everyMs: number, condition: () => Promise<boolean>): Promise<void> {
    const deadline = performance.now() + patienceMs;
    while (!(await condition())) {
      if (performance.now() > deadline) throw new Error(`${this.who}: waited ${patienceMs} ms in vain for ${what}`);
      await pause(everyMs);
    }
  }

  async close(): Promise<void> {
    for (const entrant of this.#entrants) await entrant.close();
    const database = this.client.database;
    await this.client.end();
    await once(this.#server, `drop database if exists ${database} with (force)`);
  }
}

async function once(url: string, ...texts: string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const text of texts) await client.query(text);
  } finally {
    await client.end();
  }
}

function variable(name: string): string {
  const value = process.env[name];
  if (value) return value;
  throw new Error(`${name} is not set; start this by \`npm run bench -- QUESTION\``);
}

export { variable };
