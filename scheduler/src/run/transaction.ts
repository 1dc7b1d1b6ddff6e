import type { SqlClient } from "../base/change.ts";
import { CarillonError } from "../base/errors.ts";

/** drizzle-orm, over pg or postgres.js: the object that `db.transaction(async (tx) => …)` passes. */
export interface DrizzleTransaction {
  readonly _: { readonly session: object };
  rollback(): never;
}

/** Kysely: the object that `db.transaction().execute(async (trx) => …)` passes, or a controlled transaction. */
export interface KyselyTransaction {
  readonly isTransaction: boolean;
  executeQuery(query: never): Promise<{ readonly rows: unknown[] }>;
}

/** Knex: the object that `knex.transaction(async (trx) => …)` passes. */
export interface KnexTransaction {
  readonly isTransaction?: boolean;
  isCompleted(): boolean;
  readonly client: object;
}

/** TypeORM: the object that `dataSource.transaction(async (tx) => …)` passes, or a query runner with a transaction. */
export type TypeOrmTransaction = { readonly queryRunner?: TypeOrmRunner } | TypeOrmRunner;

interface TypeOrmRunner {
  readonly isTransactionActive: boolean;
  query(text: string, values: unknown[], structured: true): Promise<{ records: unknown }>;
}

/** MikroORM: the object that `em.transactional(async (em) => …)` passes. */
export interface MikroOrmTransaction {
  getTransactionContext(): unknown;
}

/** Prisma, over its adapter for pg: the object that `prisma.$transaction(async (tx) => …)` passes. */
export interface PrismaTransaction {
  $queryRawUnsafe<T = unknown>(query: string, ...values: unknown[]): PromiseLike<T>;
}

/** postgres.js: the object that `sql.begin(async (sql) => …)` passes. */
export interface PostgresJsTransaction {
  unsafe(text: string, values?: never[]): PromiseLike<unknown>;
  savepoint(name: string, work: never): Promise<unknown>;
}

/** A transaction that the caller has begun on the store's database, in the form of the caller's library. */
export type Transaction =
  | SqlClient
  | DrizzleTransaction
  | KyselyTransaction
  | KnexTransaction
  | TypeOrmTransaction
  | MikroOrmTransaction
  | PrismaTransaction
  | PostgresJsTransaction;

/** An object whose properties are tested to recognise the library that it comes from. */
type Parts = Record<string, unknown>;

const clients = new WeakMap<object, SqlClient>();

/**
 * Returns an object with pg's method `query` for a transaction of any of these libraries; always the same object for the same
 * transaction.
 * @param what the option's name in error messages
 * @throws OPTION_INVALID for a pool, and for another library's connection without a transaction, whose statements would be
 * committed one by one. For a client of pg, `requireTransaction` checks this
 */
export function clientOf(what: string, given: unknown): SqlClient {
  const isObject = (typeof given === "object" || typeof given === "function") && given !== null;
  if (!isObject) throw unknownKind(what);
  const known = clients.get(given);
  if (known) return known;
  const client = clientIn(what, given as Parts);
  clients.set(given, client);
  return client;
}

function clientIn(what: string, given: Parts): SqlClient {
  // Tested before `query()`, which objects of TypeORM have too, but with another result than pg's.
  if ("isTransactionActive" in given) return ofTypeOrm(what, given as unknown as TypeOrmRunner);
  if ("createQueryRunner" in given || "queryRunner" in given)
    return ofTypeOrm(what, given.queryRunner as TypeOrmRunner | undefined);
  if (typeof given.query === "function") return ofPg(what, given);
  if (typeof given.executeQuery === "function") return ofKysely(what, given);
  if (typeof given.getTransactionContext === "function")
    return ofMikroOrm(what, given as unknown as MikroOrmTransaction);
  if (typeof given.$queryRawUnsafe === "function") return ofPrisma(what, given);
  if (typeof given.unsafe === "function") return ofPostgresJs(what, given);
  if (typeof given.raw === "function") return ofKnex(what, given);
  const { session } = (given._ ?? {}) as { session?: { client?: Parts } };
  if (session) return ofDrizzle(what, given, session.client ?? {});
  throw unknownKind(what);
}

/**
 * Accepts a client of pg, but refuses a pool. A pool has `query()` too, but runs each statement on any of its connections. A pool
 * is recognised by its counts of connections.
 */
function ofPg(what: string, given: Parts): SqlClient {
  const isPool = [given.totalCount, given.idleCount, given.waitingCount].every((count) => typeof count === "number");
  if (isPool)
    throw invalid(
      `${what} is a pool, and no transaction is one of all its connections`,
      "Give the client on which you began the transaction: one from pool.connect().",
    );
  return given as unknown as SqlClient;
}

function ofDrizzle(what: string, given: Parts, client: Parts): SqlClient {
  if (typeof given.rollback !== "function") throw notBegun(what, "db.transaction() passes to your function");
  return clientIn(what, client);
}

function ofTypeOrm(what: string, runner: TypeOrmRunner | undefined): SqlClient {
  if (!runner?.isTransactionActive) throw notBegun(what, "dataSource.transaction() passes to your function");
  return {
    query: async (text, values = []) => ({
      rows: ((await runner.query(text, values, true)).records ?? []) as Record<string, unknown>[],
    }),
  };
}

function ofKysely(what: string, given: Parts): SqlClient {
  if (given.isTransaction !== true) throw notBegun(what, "db.transaction().execute() passes to your function");
  const { executeQuery } = given as { executeQuery: (query: object) => Promise<{ rows: Record<string, unknown>[] }> };
  // `executeQuery` receives the same object as Kysely's CompiledQuery.raw() returns.
  return {
    query: (text, values = []) =>
      executeQuery.call(given, {
        sql: text,
        parameters: values,
        query: { kind: "RawNode", sqlFragments: [text], parameters: [] },
        queryId: { queryId: "carillon" },
      }),
  };
}

function ofKnex(what: string, given: Parts): SqlClient {
  if (given.isTransaction !== true) throw notBegun(what, "knex.transaction() passes to your function");
  const { client } = given as { client: { acquireConnection(): Promise<SqlClient> } };
  // Uses the transaction's connection, which is a client of pg, because knex.raw() would treat each `?` in a statement as a placeholder.
  return { query: async (text, values) => (await client.acquireConnection()).query(text, values) };
}

/** MikroORM's transaction contains a transaction of Knex (MikroORM 6) or of Kysely (MikroORM 7). */
function ofMikroOrm(what: string, given: MikroOrmTransaction): SqlClient {
  const context = given.getTransactionContext();
  if (!context) throw notBegun(what, "em.transactional() passes to your function");
  return clientIn(what, context as Parts);
}

function ofPrisma(what: string, given: Parts): SqlClient {
  // Only Prisma's client has $connect; a transaction does not.
  if (typeof given.$connect === "function") throw notBegun(what, "prisma.$transaction() passes to your function");
  const tx = given as unknown as PrismaTransaction;
  return {
    async query(text, values = []) {
      const rows = await tx.$queryRawUnsafe<Record<string, unknown>[]>(text, ...values).then(undefined, asOfPg);
      return {
        rows: rows.map((row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, plain(value)]))),
      };
    },
  };
}

/** Converts bigint values to numbers, because Prisma returns a BigInt for PostgreSQL's bigint. */
const plain = (value: unknown): unknown =>
  typeof value === "bigint" ? Number(value) : Array.isArray(value) ? value.map(plain) : value;

/** Throws an error with PostgreSQL's message and SQLSTATE, as pg does; Prisma's error contains both. */
function asOfPg(error: {
  meta?: { driverAdapterError?: { cause?: { originalCode?: string; originalMessage?: string } } };
}): never {
  const { originalCode: code, originalMessage: message } = error.meta?.driverAdapterError?.cause ?? {};
  throw code === undefined ? error : Object.assign(new Error(message, { cause: error }), { code });
}

/** The OID of PostgreSQL's type `unknown`, for which the server infers the type that the statement needs. */
const unknownType = 705;

function ofPostgresJs(what: string, given: Parts): SqlClient {
  if (typeof given.savepoint !== "function") throw notBegun(what, "sql.begin() passes to your function");
  const sql = given as {
    unsafe(text: string, values: unknown[]): PromiseLike<Record<string, unknown>[]>;
    typed(value: unknown, type: number): unknown;
  };
  /** Sends strings unchanged, because postgres.js would encode a string that is already JSON a second time. */
  const sentAs = (value: unknown) =>
    Array.isArray(value) || typeof value === "string"
      ? sql.typed(Array.isArray(value) ? arrayText(value) : value, unknownType)
      : value;
  return { query: async (text, values = []) => ({ rows: [...(await sql.unsafe(text, values.map(sentAs)))] }) };
}

/** Formats an array as text in PostgreSQL's array format. */
const arrayText = (values: readonly unknown[]) =>
  `{${values.map((value) => (value === null ? "NULL" : `"${String(value).replace(/["\\]/g, "\\$&")}"`)).join(",")}}`;

const notBegun = (what: string, given: string) =>
  invalid(
    `${what}: no transaction was begun on it, so each statement would be committed by itself`,
    `Give what ${given}.`,
  );

const unknownKind = (what: string) =>
  invalid(
    `${what} must be a client with pg's query(), or a transaction of Drizzle, Kysely, Knex, MikroORM, Prisma, TypeORM or postgres.js`,
    "Give the client on which you began the transaction.",
  );

const invalid = (message: string, hint: string) => new CarillonError("OPTION_INVALID", message, { hint });
