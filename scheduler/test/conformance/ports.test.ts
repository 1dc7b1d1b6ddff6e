/** Tests that the ports in examples/ports behave like their originals, on a real store. */
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { postgres } from "../support/servers.ts";
import { until } from "../support/store-stage.ts";

const folder = new URL("../../../examples/ports/", import.meta.url);
/** Imports a port without types: the ports are typed against the packed library, which is not built when these tests are compiled. */
// biome-ignore lint/suspicious/noExplicitAny: see above.
const open = async (name: string, ...given: unknown[]): Promise<any> =>
  (await import(new URL(`${name}.ts`, folder).href)).open(...given);

const name = `ports_${randomBytes(4).toString("hex")}`;
const admin = new pg.Client({ connectionString: postgres().direct });
const url = Object.assign(new URL(postgres().direct), { pathname: `/${name}` }).href;

beforeAll(async () => {
  await admin.connect();
  await admin.query(`create database ${name}`);
});
afterAll(async () => {
  await admin.query(`drop database ${name} with (force)`);
  await admin.end();
});

test("no port is longer than its original", () => {
  const lines = (file: string) =>
    readFileSync(new URL(file, folder), "utf8")
      .split("\n")
      .filter((line) => line.trim() !== "" && !/^\s*(?:\/\*|\*|\/\/)/.test(line)).length;
  const originals = readdirSync(folder).filter((file) => file.endsWith(".mjs"));
  expect(originals).toHaveLength(3);
  for (const original of originals) {
    const port = original.replace(/\.[\w-]+\.mjs$/, ".ts");
    expect([port, lines(port)]).toEqual([port, expect.toSatisfy((n: number) => n <= lines(original))]);
  }
});

test("thumbnails", async () => {
  const told: string[] = [];
  const app = await open("thumbnails", url, {
    resize: async (_image: string, width: number) => width * 10,
    clean: async () => 0,
    notify: (task: string, error: string) => told.push(`${task}: ${error}`),
  });
  try {
    expect(await app.thumbnail("a.png", 64)).toEqual({ image: "a.png", bytes: 640 });
    const all = await app.all([1, 2, 3].map((width) => ({ image: "b.png", width })));
    expect(await Promise.all(all.map((run: { result(): unknown }) => run.result()))).toHaveLength(3);
    const tonight = await app.tonight("c.png", 1, new Date(Date.now() + 3_600_000));
    expect((await tonight.status()).state, "its rate is looked at when it is due").toBe("held");
    await app.album([
      { image: "d.png", width: 1 },
      { image: "e.png", width: 2 },
    ]);
    const pool = new pg.Pool({ connectionString: url });
    const total = await until("the album's total", async () => {
      const { rows } = await pool.query(
        "select h.result from carillon.run_history h join carillon.task t on t.id = h.task_id where t.name = 'album-total'",
      );
      return rows[0]?.result;
    });
    expect(total).toEqual({ images: 2, bytes: 30 });
    await pool.end();
    expect((await app.failed()).items).toEqual([]);
    expect(told).toEqual([]);
  } finally {
    await app.close();
  }
});

test("orders", async () => {
  const pool = new pg.Pool({ connectionString: url });
  await pool.query("create table orders (id text primary key, amount int)");
  const [shipped, dead]: string[][] = [[], []];
  const app = await open("orders", url, {
    pool,
    charge: async (order: string) => `receipt of ${order}`,
    ship: async (order: string) => void shipped?.push(order),
    report: async () => undefined,
    alarm: async (order: string) => void dead?.push(order),
  });
  try {
    const placed = await app.place("o-1", 100);
    expect(await placed.result()).toEqual({ receipt: "receipt of o-1" });
    await expect(app.place("o-1", 100)).rejects.toThrow("duplicate key");
    await app.many(["o-2", "o-3"]);
    await until("all are shipped", () => shipped?.length === 3);
    expect(shipped?.toSorted()).toEqual(["o-1", "o-2", "o-3"]);
    const later = await app.later("o-4", 3_600);
    expect(await app.state(later.runId)).toBe("ready");
    expect(await app.cancel(later.runId)).toBe("cancelled");
    expect(await app.state(later.runId)).toBe("cancelled");
    expect(dead).toEqual([]);
  } finally {
    await app.close();
    await pool.end();
  }
});

test("digest", async () => {
  const [sent, told]: string[][] = [[], []];
  const app = await open("digest", url, {
    send: async (to: string, what: string) => void sent?.push(`${what} to ${to}`),
    sweep: async () => undefined,
    tell: (what: string) => told?.push(what),
  });
  const subscribers = async () => {
    const all: string[] = [];
    for await (const one of app.subscribers()) all.push(one);
    return all;
  };
  try {
    await app.subscribe("ada@example.org", 6, "Europe/London");
    await app.subscribe("bob@example.org", 7, "Asia/Tokyo");
    await app.subscribe("ada@example.org", 8, "Europe/London");
    expect(await subscribers()).toEqual(["ada@example.org", "bob@example.org"]);
    await app.unsubscribe("bob@example.org");
    expect(await subscribers()).toEqual(["ada@example.org"]);
    await app.now("ada@example.org");
    await app.remind("bob@example.org", new Date());
    await until("both are sent", () => sent?.length === 2 && told?.length === 2);
    expect(sent?.toSorted()).toEqual(["digest to ada@example.org", "reminder to bob@example.org"]);
    expect(told?.toSorted()).toEqual(["digest succeeded", "remind succeeded"]);
    await app.pause();
  } finally {
    await app.close();
  }
});
