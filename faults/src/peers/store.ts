import pg from "pg";
import { RedisServer } from "../../../scheduler/test/support/redis-server.ts";
import { Postgres } from "../postgres.ts";
import type { Traits } from "./subject.ts";

/** A server for one subject, which can be killed and started again. */
export interface Store {
  readonly url: string;
  readonly title: string;
  crash(): Promise<void>;
  up(): Promise<void>;
  close(): Promise<void>;
}

/** Redis syncs its append-only file each second, as its docs and BullMQ's advise, and checks timers 100 times a second as in bench/. */
const redisArgs = ["--appendonly", "yes", "--appendfsync", "everysec", "--hz", "100"];

export async function storeFor({ server }: Traits): Promise<Store> {
  if (server === "postgres") {
    const postgres = await Postgres.start();
    return {
      url: postgres.url,
      title: `PostgreSQL ${postgres.version}`,
      crash: () => postgres.crash(),
      up: () => postgres.up(),
      close: () => postgres.close(),
    };
  }
  const redis = await RedisServer.start(redisArgs);
  const told = /redis_version:(\S+)/.exec(String(await redis.ask("INFO", "server")));
  return {
    url: redis.url,
    title: `Redis ${told?.[1]}, appendfsync everysec`,
    crash: () => redis.kill(),
    up: () => redis.up(),
    close: () => redis.close(),
  };
}

/** Returns the number of late results that Carillon's store has refused and recorded. */
export async function refusedBy(store: Store): Promise<number> {
  const client = new pg.Client({ connectionString: store.url });
  await client.connect();
  try {
    const { rows } = await client.query<{ n: number }>("select count(*)::int as n from carillon.late_result");
    return rows[0]?.n ?? Number.NaN;
  } finally {
    await client.end();
  }
}
