/** Tests runs that are enqueued in the caller's own transaction, with the transaction objects of each library that applications use. */
import { randomBytes } from "node:crypto";
import { EntitySchema } from "@mikro-orm/core";
import { MikroORM } from "@mikro-orm/postgresql";
import { sql as drizzleSql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { drizzle as drizzleOnPostgresJs } from "drizzle-orm/postgres-js";
import knex from "knex";
import { Kysely, sql as kyselySql, PostgresDialect } from "kysely";
import pg from "pg";
import postgres from "postgres";
import { DataSource } from "typeorm";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Carillon, carillon, every, type Transaction } from "../../src/index.ts";
import { prismaClient } from "../support/prisma.ts";
import { everyPostgres } from "../support/servers.ts";
import { recordingLog } from "../support/store-stage.ts";

/** Adapter for the transactions of one database library. */
interface Library {
  name: string;
  /**
   * Runs `work` in a transaction, and rolls the transaction back if `work` rejects.
   * @param work receives the library's transaction object, and a function that sends a statement in that transaction
   */
  transaction(
    work: (tx: Transaction, send: (statement: string) => Promise<unknown>) => Promise<void>,
  ): Promise<unknown>;
  /** A connection object of the same library that has no open transaction. */
  outside: unknown;
  close(): Promise<unknown>;
}

describe.each(everyPostgres())("transactions on $title", ({ url }) => {
  const schema = `transactions_${randomBytes(4).toString("hex")}`;
  const database = new pg.Client({ connectionString: url });
  let tower: Carillon;

  beforeAll(async () => {
    await database.connect();
    await database.query(`create schema ${schema}_own`);
    await database.query(`create table ${schema}_own.invoice (id int)`);
    tower = carillon({ store: url, schema, handleSignals: false, log: recordingLog().log });
    tower.task("invoice", {}, () => "done");
    await tower.start();
  });
  afterAll(async () => {
    await tower.stop();
    await database.query(`drop schema ${schema} cascade; drop schema ${schema}_own cascade`);
    await database.end();
  });

  const libraries: Record<string, () => Promise<Library> | Library> = {
    "Drizzle on pg": () => {
      const pool = new pg.Pool({ connectionString: url });
      const db = drizzle(pool);
      return {
        name: "drizzle",
        transaction: (work) => db.transaction((tx) => work(tx, (statement) => tx.execute(drizzleSql.raw(statement)))),
        outside: db,
        close: () => pool.end(),
      };
    },
    "Drizzle on postgres.js": () => {
      const client = postgres(url, { onnotice: () => undefined });
      const db = drizzleOnPostgresJs(client);
      return {
        name: "drizzle-js",
        transaction: (work) => db.transaction((tx) => work(tx, (statement) => tx.execute(drizzleSql.raw(statement)))),
        outside: db,
        close: () => client.end(),
      };
    },
    Kysely: () => {
      const db = new Kysely<Record<string, never>>({
        dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: url }) }),
      });
      return {
        name: "kysely",
        transaction: (work) =>
          db.transaction().execute((trx) => work(trx, (statement) => kyselySql.raw(statement).execute(trx))),
        outside: db,
        close: () => db.destroy(),
      };
    },
    Knex: () => {
      const db = knex({ client: "pg", connection: url });
      return {
        name: "knex",
        transaction: (work) => db.transaction((trx) => work(trx, async (statement) => trx.raw(statement))),
        outside: db,
        close: () => db.destroy(),
      };
    },
    TypeORM: async () => {
      const source = await new DataSource({ type: "postgres", url }).initialize();
      return {
        name: "typeorm",
        transaction: (work) => source.transaction((tx) => work(tx, (statement) => tx.query(statement))),
        outside: source,
        close: () => source.destroy(),
      };
    },
    MikroORM: async () => {
      const invoice = new EntitySchema<{ id: number }>({
        name: "Invoice",
        properties: { id: { type: "number", primary: true } },
      });
      const orm = await MikroORM.init({
        clientUrl: url,
        entities: [invoice],
        discovery: { warnWhenNoEntities: false },
      });
      const em = orm.em.fork();
      return {
        name: "mikro-orm",
        transaction: (work) => em.transactional((tx) => work(tx, (statement) => tx.execute(statement))),
        outside: em,
        close: () => orm.close(),
      };
    },
    Prisma: () => {
      const prisma = prismaClient(url);
      return {
        name: "prisma",
        transaction: (work) =>
          prisma.$transaction((tx) => work(tx, (statement) => tx.$executeRawUnsafe(statement)), { timeout: 60_000 }),
        outside: prisma,
        close: () => prisma.$disconnect(),
      };
    },
    "postgres.js": () => {
      const sql = postgres(url, { onnotice: () => undefined });
      return {
        name: "postgres-js",
        transaction: (work) => sql.begin((tx) => work(tx, (statement) => tx.unsafe(statement))),
        outside: sql,
        close: () => sql.end(),
      };
    },
  };

  describe.each(Object.keys(libraries))("of %s", (title) => {
    let library: Library;
    beforeAll(async () => {
      library = await (libraries[title] as () => Promise<Library>)();
    });
    afterAll(() => library.close());

    const invoices = async () =>
      (await database.query(`select count(*)::int as n from ${schema}_own.invoice`)).rows[0].n as number;

    const schedule = async () => {
      for await (const one of tower.schedules.of("invoice")) if (one.name === library.name) return one;
      return undefined;
    };

    test("runs, schedules and the caller's rows exist together, or not at all", async () => {
      const insert = `insert into ${schema}_own.invoice values (1)`;
      const payload = { text: "a \"quoted\" \\ {brace}, 'and' ü", list: [1, null, "x"], when: "2026-01-01" };
      const before = await invoices();
      let runIds: number[] = [];
      await library.transaction(async (tx, send) => {
        await send(insert);
        const one = await tower.enqueue("invoice", payload, { tx, key: `${library.name} "1"\\`, limitKey: "{a,b}" });
        const many = await tower.enqueueMany("invoice", [payload, null, "text"] as never, { tx, in: "1h" });
        await tower.schedules.set("invoice", library.name, every("1h"), { payload, tx });
        runIds = [one, ...many].map(({ runId }) => runId);
        expect((await database.query(`select from ${schema}.run where id = any ($1)`, [runIds])).rowCount).toBe(0);
      });
      expect(await invoices()).toBe(before + 1);
      const [first, ...others] = runIds as [number, ...number[]];
      expect(await tower.runs.result(first, { timeout: "60s" })).toBe("done");
      expect(await tower.runs.get(first)).toMatchObject({ payload, key: `${library.name} "1"\\`, limitKey: "{a,b}" });
      expect(await Promise.all(others.map(async (id) => (await tower.runs.get(id)).payload))).toEqual([
        payload,
        null,
        "text",
      ]);
      expect(await schedule()).toMatchObject({ payload });

      const refused = library.transaction(async (tx, send) => {
        await send(insert);
        await tower.enqueue("invoice", payload, { tx });
        await tower.schedules.remove("invoice", library.name, { tx });
        throw new Error("no");
      });
      await expect(refused).rejects.toThrow("no");
      expect(await invoices()).toBe(before + 1);
      expect(await schedule()).toMatchObject({ payload });
      const runs = await database.query(`select count(*)::int as n from ${schema}.run where id > $1`, [
        Math.max(...runIds),
      ]);
      expect(runs.rows).toEqual([{ n: 0 }]);
    });

    test("a handler completes its run together with its rows", async () => {
      const before = await invoices();
      const name = `completes-${library.name}`;
      const done = tower.task(
        name,
        {},
        (run) =>
          library.transaction(async (tx, send) => {
            await send(`insert into ${schema}_own.invoice values (${run.id})`);
            await run.complete(tx, { by: library.name });
          }) as Promise<undefined>,
      );
      const handle = await done.enqueue();
      expect(await handle.result({ timeout: "60s" })).toEqual({ by: library.name });
      expect(await invoices()).toBe(before + 1);
    });

    test("its connection without a transaction is refused, with a hint how to begin one", async () => {
      const tx = library.outside as Transaction;
      await expect(tower.enqueue("invoice", null, { tx })).rejects.toMatchObject({
        code: "OPTION_INVALID",
        message: expect.stringMatching(/no transaction was begun/),
        hint: expect.stringMatching(/\S/),
      });
    });
  });
});
