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

/** A proxy that cuts a connection in place of the n-th reply, those of all connections counted together. */
async function cutting(n: number): Promise<StoreProxy> {
  const proxy = await StoreProxy.before(server.url);
  let replies = 0;
  proxy.swallowReply(() => ++replies === n);
  return proxy;
}

/** @returns whether the n-th reply was one of the start's */
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
/** A start takes half a second: every fourth reply is tried, from the first, second, third or fourth on by chance. Which one was lost stands in the error. */
const oneOf = 4;
const step = oneOf * lanes;
const first = 1 + Math.floor(Math.random() * oneOf);

describe.each<[string, CarillonOptions]>([
  ["a worker", { scheduler: false, worker: true }],
  ["a node that plans, runs and listens", { scheduler: true, worker: true, listen: "127.0.0.1:0" }],
])("%s", (_, options) => {
  it("starts whichever reply of its start is lost, of which every fourth is tried", async () => {
    const lost = await Promise.all(
      Array.from({ length: lanes }, async (_lane, lane) => {
        const schema = newSchema();
        // This makes the schema; the lost reply is one of the first.
        await startsDespite(first + oneOf * lane, schema, options);
        for (let n = first + oneOf * lane; ; n += step) {
          await sql.query(`truncate ${schema}.user_account cascade; truncate ${schema}.task cascade`);
          if (!(await startsDespite(n, schema, options))) return n;
        }
      }),
    );
    // Connecting alone takes more replies than that.
    expect(Math.min(...lost)).toBeGreaterThan(10);
  });
});

it("a store is opened and its schema made whichever reply is lost: every eighth is tried", async () => {
  let n = 1;
  for (let cut = true; cut; n += 8) {
    const proxy = await cutting(n);
    const store = await openPostgres({ url: proxy.url, schema: newSchema() });
    cut = proxy.swallowed === 1;
    proxy.swallowReply(() => false); // No reply is swallowed any more.
    expect((await store.sessions.members()).members).toEqual([]);
    await store.close();
    await proxy.close();
  }
  expect(n).toBeGreaterThan(50);
});
