import { randomBytes } from "node:crypto";
import pg from "pg";
import { afterAll, afterEach, beforeAll } from "vitest";
import { type Carillon, type CarillonOptions, carillon } from "../../src/index.ts";
import { recordingLog } from "./store-stage.ts";

/**
 * Creates a schema name for the tests of a file, a client of the database, and a function that makes instances. After each test, the
 * instances are stopped and the schema is dropped.
 */
export function ownSchema(url: string, prefix: string, common: CarillonOptions = {}) {
  const schema = `${prefix}_${randomBytes(4).toString("hex")}`;
  const database = new pg.Client({ connectionString: url });
  const towers: Carillon[] = [];
  beforeAll(() => database.connect());
  afterEach(async () => {
    await Promise.all(towers.splice(0).map((tower) => tower.stop()));
    await database.query(`drop schema if exists ${schema} cascade`);
  });
  afterAll(() => database.end());
  const make = (options: CarillonOptions = {}): Carillon => {
    const { log } = recordingLog();
    const tower = carillon({ store: url, schema, handleSignals: false, log, ...common, ...options });
    towers.push(tower);
    return tower;
  };
  return { schema, database, make };
}
