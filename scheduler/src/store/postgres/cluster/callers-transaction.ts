import type { SqlClient } from "../../../base/change.ts";
import { CarillonError } from "../../../base/errors.ts";
import type { Database } from "../database.ts";

const noTransaction = "25P01";
const noTable = /^(?:42P01|3F000)$/;

/** @throws OPTION_INVALID if the client is not in a transaction on this store's database */
export type CheckTransaction = (client: SqlClient) => Promise<void>;

/**
 * Returns a function that checks that a caller's client is in a transaction on this store's database. Outside a transaction, each statement
 * would be committed by itself, before the caller's own writes. The check is LOCK TABLE in its weakest mode, which PostgreSQL refuses
 * outside a transaction.
 * @param clusterId the id in the `cluster` row of this store
 */
export function transactionCheck(database: Database, clusterId: string): CheckTransaction {
  const { schema: s } = database;
  /** Clients whose database has been checked: a client never changes its database. */
  const known = new WeakSet<SqlClient>();
  const sql = `select id from ${s}.cluster`;

  return async (client) => {
    await client.query(`lock table ${s}.cluster in access share mode`).catch((error: unknown) => {
      throw refusalOf(error) ?? database.refused(error);
    });
    if (known.has(client)) return;
    const answer: { rows?: Record<string, unknown>[] } = await client.query(sql);
    const id = answer.rows?.[0]?.id;
    if (id === undefined)
      throw refused(
        "its query() does not answer as pg's does, with rows",
        "Give the pg client under it, on which the transaction was begun.",
      );
    // The store is queried only if the ids differ, as after a restore. The query needs a second connection, and callers' transactions may
    // hold every connection of a pooler.
    if (id !== clusterId && id !== (await database.query<{ id: string }>("cluster-id", sql))[0]?.id) throw elsewhere();
    known.add(client);
  };
}

function refusalOf(error: unknown): CarillonError | undefined {
  const { code } = error as { code?: string };
  if (code === noTransaction)
    return refused(
      "no transaction was begun on it, so each statement would be committed by itself",
      'Begin one first: await client.query("begin").',
    );
  return code !== undefined && noTable.test(code) ? elsewhere() : undefined;
}

const elsewhere = () =>
  refused(
    "it is a transaction on another database than the store's",
    "Begin it on a connection to the store's database.",
  );

const refused = (why: string, hint: string) =>
  new CarillonError("OPTION_INVALID", `this transaction cannot be joined: ${why}`, { path: "tx", hint });
