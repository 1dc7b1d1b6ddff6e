import { randomBytes } from "node:crypto";
import pg from "pg";
import { afterAll, describe, expect, it } from "vitest";
import { carillon } from "../../src/library/carillon.ts";
import { every } from "../../src/schedule/schedule.ts";
import type { CarillonOptions } from "../../src/settings/settings.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { StoreProxy } from "../support/proxy.ts";
import { machinePostgres } from "../support/servers.ts";
import { numbers, recordingLog } from "../support/store-stage.ts";

const server = machinePostgres();
const sql = new pg.Pool({ connectionString: server.url, types: numbers, max: 4 });
const schemas: string[] = [];
afterAll(async () => {
  for (const schema of schemas) await sql.query(`drop schema if exists ${schema} cascade`);
  await sql.end();
});

function newSchema(): string {
  const schema = `start_${randomBytes(5).toString("hex")}`;
  schemas.push(schema);
  return schema;
}

/** Starts a proxy that closes a connection in place of the n-th reply; the replies of all connections are counted together. */
async function cutting(n: number): Promise<StoreProxy> {
  const proxy = await StoreProxy.before(server.url);
  let replies = 0;
  proxy.swallowReply(() => ++replies === n);
  return proxy;
}

/** Starts a process and loses the n-th reply. @returns false if the start was over before the n-th reply */
async function startsDespite(n: number, schema: string, options: CarillonOptions): Promise<boolean> {
  const proxy = await cutting(n);
  const { log, lines } = recordingLog();
  const tower = carillon({
    store: proxy.url,
    schema,
    handleSignals: false,
    drain: "100ms",
    sessionTimeout: "2s",
    ...(options.listen === undefined ? {} : { adminPassword: "nine herons at the weir" }),
    log,
    ...options,
  });
  tower.task("tick", { schedule: every("1h") }, () => undefined);
  try {
    await tower.start();
    const cut = proxy.swallowed === 1;
    const told = lines.filter(({ message }) => message.startsWith("first start: the user was made"));
    const { rows: users } = await sql.query(`select name from ${schema}.user_account`);
    const { rows: tasks } = await sql.query(`select name from ${schema}.task`);
    expect({ told: told.length, users, tasks }).toEqual({
      told: options.listen === undefined ? 0 : 1,
      users: options.listen === undefined ? [] : [{ name: "admin" }],
      tasks: [{ name: "tick" }],
    });
    return cut;
  } catch (error) {
    throw new Error(`the start did not survive the loss of reply ${n}`, { cause: error });
  } finally {
    await tower.stop();
    await proxy.close();
  }
}

const lanes = 4;
/**
 * Only every fourth reply is lost in turn, because each lost reply takes a whole start. The first one is chosen at random from the first
 * four; the error message names the lost reply.
 */
const oneOf = 4;
const step = oneOf * lanes;
const first = 1 + Math.floor(Math.random() * oneOf);

describe.each<[string, CarillonOptions]>([
  ["a worker", { scheduler: false, worker: true }],
  ["a node that plans, runs and listens", { scheduler: true, worker: true, listen: "127.0.0.1:0" }],
])("%s", (_, options) => {
  it("starts whichever reply of its start is lost (every fourth is tested)", async () => {
    const lost = await Promise.all(
      Array.from({ length: lanes }, async (_lane, lane) => {
        const schema = newSchema();
        // The first start also creates the schema, and loses one of its first replies.
        await startsDespite(first + oneOf * lane, schema, options);
        for (let n = first + oneOf * lane; ; n += step) {
          await sql.query(`truncate ${schema}.user_account cascade; truncate ${schema}.task cascade`);
          if (!(await startsDespite(n, schema, options))) return n;
        }
      }),
    );
    // Connecting alone takes more than ten replies, so fewer would mean that nothing was tested.
    expect(Math.min(...lost)).toBeGreaterThan(10);
  });
});

it("a store is opened and its schema created whichever reply is lost (every eighth is tested)", async () => {
  let n = 1;
  for (let cut = true; cut; n += 8) {
    const proxy = await cutting(n);
    const store = await openPostgres({ url: proxy.url, schema: newSchema() });
    cut = proxy.swallowed === 1;
    proxy.swallowReply(() => false); // From now on, all replies are passed on.
    expect((await store.sessions.members()).members).toEqual([]);
    await store.close();
    await proxy.close();
  }
  expect(n).toBeGreaterThan(50);
});
