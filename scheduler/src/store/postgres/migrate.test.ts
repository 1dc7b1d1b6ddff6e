import { expect, it } from "vitest";
import type { Database } from "./database.ts";
import { migrate } from "./migrate.ts";
import { migrations } from "./migrations/index.ts";

it("refuses a server that is too old, and names alternatives", async () => {
  const old = { version: 140_012, recovery: false, readOnly: false, present: false, role: "app", owner: null };
  const database = { schema: "carillon", query: async () => [old] } as unknown as Database;
  await expect(migrate(database, 0)).rejects.toMatchObject({
    code: "STORE_UNSUPPORTED",
    message: "the server is PostgreSQL 14",
    hint: expect.stringMatching(/PostgreSQL 15 or later.*"embedded"/),
  });
});

it("has its migrations in ascending order, because the stored number stands for all earlier ones", () => {
  const numbers = migrations.map(({ number }) => number);
  expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
});
