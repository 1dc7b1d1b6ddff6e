import type { SqlClient } from "../../base/change.ts";
import type { Database } from "./database.ts";

/** Runs one statement: on its own under `name`, or in the caller's transaction, and then `name` is ignored. */
export type Query = <Row>(name: string, text: string, values: unknown[]) => Promise<Row[]>;

export const queryOf =
  (database: Database): Query =>
  (name, text, values) =>
    database.query(name, text, values);

export const queryIn =
  (client: SqlClient): Query =>
  async <Row>(_name: string, text: string, values: unknown[]) =>
    (await client.query(text, values)).rows as Row[];
