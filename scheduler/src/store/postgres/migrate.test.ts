import { expect, it } from "vitest";
import type { Database } from "./database.ts";
import { migrate } from "./migrate.ts";

it("refuses a server that is too old, and says what else there is", async () => {
  const old = { version: 140_012, recovery: false, readOnly: false, present: false, role: "app", owner: null };
  const database = { schema: "carillon", query: async () => [old] } as unknown as Database;
  await expect(migrate(database, 0)).rejects.toMatchObject({
    code: "STORE_UNSUPPORTED",
    message: "the server is PostgreSQL 14",
    hint: expect.stringMatching(/PostgreSQL 15 or later.*"embedded"/),
  });
});
