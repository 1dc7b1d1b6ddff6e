import { randomBytes } from "node:crypto";
import pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Database } from "../../src/store/postgres/database.ts";
import { ownRelations } from "../../src/store/postgres/foreign.ts";
import { migrate } from "../../src/store/postgres/migrate.ts";
import { migrations, servesFrom } from "../../src/store/postgres/migrations/index.ts";
import { openPostgres, type PostgresOptions } from "../../src/store/postgres/postgres.ts";
import { hasCluster } from "../../src/store/postgres/runs/inspect.ts";
import { withDatabase } from "../../src/store/postgres/with-database.ts";
import type { Store } from "../../src/store/store.ts";
import { everyPostgres } from "../support/servers.ts";
import { numbers, recordingLog, until } from "../support/store-stage.ts";

const newest = migrations.at(-1)?.number as number;

describe.each(everyPostgres())("migrations on $title", (server) => {
  const sql = new pg.Pool({ connectionString: server.url, types: numbers });
  const stores: Store[] = [];
  let schema: string;
  beforeAll(fresh);
  afterEach(async () => {
    await Promise.all(stores.splice(0).map((store) => store.close()));
    await sql.query(`drop schema if exists ${schema} cascade`);
    fresh();
  });
  afterAll(() => sql.end());

  function fresh(): void {
    schema = `migrations_${randomBytes(5).toString("hex")}`;
  }
  async function open(options: Partial<PostgresOptions> = {}): Promise<Store> {
    const store = await openPostgres({
      url: server.url,
      schema,
      failFast: true,
      connectionsMax: 2,
      ...options,
    });
    stores.push(store);
    return store;
  }
  const applied = async () =>
    (await sql.query(`select number from ${schema}.migration order by number`)).rows.map(({ number }) => number);
  // Connects without a pooler, which would refuse `options`.
  const withOptions = (text: string) => `${server.direct}?options=${encodeURIComponent(text)}`;

  it("many nodes that start at once apply each migration once", async () => {
    await Promise.all(Array.from({ length: 8 }, () => open()));
    expect(await applied()).toEqual(migrations.map(({ number }) => number));
    expect((await sql.query(`select id from ${schema}.cluster`)).rows).toHaveLength(1);
    await Promise.all(Array.from({ length: 4 }, () => open()));
    expect(await applied()).toEqual(migrations.map(({ number }) => number));
  });

  it("two schemas of one database do not wait for each other's migration", async () => {
    const other = await sql.connect();
    try {
      await other.query("begin");
      await other.query("select pg_advisory_xact_lock($1, hashtext($2))", [0x43_41_52_49, '"some_other_schema"']);
      await open();
      expect(await applied()).toEqual(migrations.map(({ number }) => number));
      await other.query("rollback");
    } finally {
      other.release();
    }
  });

  it("a database newer than the code is refused before any write", async () => {
    await open();
    await sql.query(`insert into ${schema}.migration (number, name, applied_ms) values ($1, 'of tomorrow', 0)`, [
      newest + 1,
    ]);
    await sql.query(`drop table ${schema}.run_log`);
    const look = async () =>
      (
        await sql.query(
          `select count(*) as n, (select count(*) from pg_class where relnamespace = to_regnamespace($1)) as tables from ${schema}.migration`,
          [schema],
        )
      ).rows;
    const before = await look();
    await expect(open()).rejects.toMatchObject({
      code: "STORE_NEWER",
      message: expect.stringContaining(`${newest + 1}`),
    });
    await expect(open({ failFast: false }), "waiting would not help").rejects.toMatchObject({ code: "STORE_NEWER" });
    expect(await look()).toEqual(before);
  });

  it("a newer database is used if its migration declares this version as supported: nodes N and N−1 together", async () => {
    const old = await open();
    const newer = `insert into ${schema}.migration (number, name, applied_ms, serves) values ($1, 'of tomorrow', 0, $2)`;
    await sql.query(newer, [newest + 1, newest]);
    // A column that a later version adds and this code does not know.
    await sql.query(`alter table ${schema}.session add column of_tomorrow text not null default 'x'`);
    const beside = await open();
    for (const store of [old, beside]) await store.sessions.cluster();
    await open({ migrate: false });
    expect((await applied()).at(-1), "nothing was written").toBe(newest + 1);
    await sql.query(newer, [newest + 2, newest + 1]);
    await expect(open()).rejects.toMatchObject({ code: "STORE_NEWER" });
  });

  it("with migrate: false an older database is refused, and nothing is written", async () => {
    await expect(open({ migrate: false })).rejects.toMatchObject({ code: "STORE_OLDER" });
    expect((await sql.query("select to_regnamespace($1) as there", [schema])).rows).toEqual([{ there: null }]);
    await open();
    await open({ migrate: false });
    await sql.query(`delete from ${schema}.migration where number = $1`, [newest]);
    await expect(open({ migrate: false })).rejects.toMatchObject({ code: "STORE_OLDER" });
  });

  it("a migration that earlier nodes must tolerate only adds, or else declares them unsupported", () => {
    // Without a reference the server only checks less. No code relies on such a check.
    const takesAway =
      /\b(?:drop\s+(?:table|column|constraint(?!\s+(?:if\s+exists\s+)?\w+_fkey\b)|sequence)|rename|alter\s+column\s+\w+\s+(?:type|set\s+not\s+null))\b/i;
    const strict = /add\s+column\s+(?:if\s+not\s+exists\s+)?\w+[^,;]*\bnot\s+null\b(?![^,;]*\bdefault\b)/i;
    const wrong = migrations
      .filter(({ number }) => number > servesFrom)
      .filter(({ sql: text }) => takesAway.test(text("s")) || strict.test(text("s")));
    expect(
      wrong.map(({ name }) => name),
      "raise servesFrom in migrations/index.ts, or add only",
    ).toEqual([]);
    expect(servesFrom).toBeLessThanOrEqual(newest);
    for (const bad of [
      "alter table s.a drop column b;",
      "alter table s.a drop constraint a_pkey;",
      "alter table s.a add column b int not null;",
    ])
      expect(takesAway.test(bad) || strict.test(bad)).toBe(true);
    expect(strict.test("alter table s.a add column b int not null default 0, add column c text;")).toBe(false);
  });

  it.each(["fresh", "migrated"])("a read-only server is refused (%s)", async (state) => {
    if (state === "migrated") await open();
    const readOnly = open({ url: withOptions("-c default_transaction_read_only=on") });
    await expect(readOnly).rejects.toMatchObject({ code: "STORE_READ_ONLY", hint: expect.stringContaining("primary") });
    const { rows } = await sql.query("select to_regnamespace($1) is not null as present", [schema]);
    expect(rows).toEqual([{ present: state === "migrated" }]);
  });

  it("a server that is too old is refused before any write", async () => {
    const asked: string[] = [];
    const old = {
      schema: '"x"',
      query: async (_name: string, text: string) => {
        asked.push(text);
        return [{ version: 140_011, recovery: false, readOnly: false, present: null }];
      },
    } as unknown as Database;
    await expect(migrate(old, 0)).rejects.toMatchObject({
      code: "STORE_UNSUPPORTED",
      message: expect.stringContaining("14"),
    });
    expect(asked).toHaveLength(1);
  });

  it("a wrong password, an unknown database and missing rights are refused at once", async () => {
    const url = new URL(server.direct); // Connects without a pooler, which may accept any password.
    url.password = "wrong";
    await expect(open({ url: url.href, failFast: false })).rejects.toMatchObject({ code: "STORE_REFUSED" });
    const unknown = new URL(server.url);
    unknown.pathname = "/never_there";
    await expect(open({ url: unknown.href, failFast: false })).rejects.toMatchObject({ code: "STORE_REFUSED" });
    await expect(open({ url: withOptions("-c role=pg_monitor"), failFast: false })).rejects.toMatchObject({
      code: "STORE_REFUSED",
    });
  });

  it("a role that owns the schema does not need the right to create schemas", async () => {
    const role = `${schema}_owner`;
    const mayCreate = `select has_database_privilege('${role}', current_database(), 'create') as may`;
    await sql.query(`create role ${role}`);
    try {
      await sql.query(`create schema ${schema} authorization ${role}`);
      expect((await sql.query(mayCreate)).rows).toEqual([{ may: false }]);
      await open({ url: withOptions(`-c role=${role}`) });
      expect(await applied()).toEqual(migrations.map(({ number }) => number));
      await expect(open({ url: withOptions(`-c role=${role}`), schema: `${schema}_2` })).rejects.toMatchObject({
        code: "STORE_REFUSED",
      });
    } finally {
      await Promise.all(stores.splice(0).map((store) => store.close()));
      await sql.query(`drop owned by ${role}`);
      await sql.query(`drop role ${role}`);
    }
  });

  it.each([
    ["create table $s.task (id int)", "table task"],
    ["create table $s.migration (name text)", "table migration"],
    ["create view $s.run as select 1; create sequence $s.fence", "sequence fence, view run"],
    ["create type $s.plan as enum ('a')", "type plan"],
    ["create function $s.whole() returns int language sql as 'select 1'", "function whole"],
    ["create function $s.tell(number int) returns int language sql as 'select 1'", "function tell"],
    [
      "create materialized view $s.awaited as select 1; create unlogged table $s.signal ()",
      "table signal, view awaited",
    ],
    ["create table $s.mine (id int); create sequence $s.session_id_seq", "sequence session_id_seq"],
    ["create table $s.mine (id int); create index run_ready on $s.mine (id)", "index run_ready"],
  ])("a schema in which another application has %j is refused, and stays unchanged", async (text, named) => {
    await sql.query(`create schema ${schema}; ${text.replaceAll("$s", schema)}`);
    const names = async () =>
      (await sql.query("select relname from pg_class where relnamespace = $1::regnamespace order by 1", [schema])).rows;
    const before = await names();
    await expect(open({ failFast: false })).rejects.toMatchObject({
      code: "STORE_FOREIGN",
      message: expect.stringMatching(new RegExp(`under names that Carillon needs: ${named}$`)),
      hint: expect.stringContaining("--schema"),
    });
    expect(await names()).toEqual(before);
    expect(await hasCluster(server.url, schema)).toBe(false);
  });

  it("no table, sequence or view that it makes is missing from the names that it needs", async () => {
    await open();
    const { rows } = await sql.query(
      "select relname as name from pg_class where relnamespace = $1::regnamespace and relkind = any($2) and not relispartition",
      [schema, ["r", "p", "S", "v", "m", "f"]],
    );
    const needed = new Set([...ownRelations(), "migration"]);
    expect(rows.map(({ name }) => name).filter((name) => !needed.has(name))).toEqual([]);
  });

  it("a schema in which another application has other tables is shared with it", async () => {
    await sql.query(`create schema ${schema}; create table ${schema}.orders (id int)`);
    await open();
    expect(await applied()).toEqual(migrations.map(({ number }) => number));
  });

  it("objects that another application created since then only block later migrations", async () => {
    await open();
    await sql.query(`delete from ${schema}.migration where number >= 28`);
    await expect(open()).rejects.toMatchObject({
      code: "STORE_FOREIGN",
      message: expect.stringContaining("function log_timeline"),
    });
  });

  it("an unreachable server is reported at once with failFast, and waited for otherwise", async () => {
    const nowhere = "postgres://x@127.0.0.1:1/x";
    await expect(open({ url: nowhere })).rejects.toMatchObject({ code: "STORE_UNREACHABLE" });
    const { log, lines } = recordingLog();
    const stop = new AbortController();
    const waiting = open({ url: nowhere, failFast: false, signal: stop.signal, log });
    await until("it says so", () => lines.some(({ level }) => level === "error"));
    stop.abort();
    await expect(waiting).rejects.toMatchObject({ code: "STORE_UNREACHABLE" });
    expect(
      lines.filter(({ level }) => level === "error"),
      "once",
    ).toHaveLength(1);
  });

  it("relaxed durability comes to existing tasks without a rewrite of their table", async () => {
    await withDatabase({ url: server.url, schema }, async (database) => {
      await migrate(database, 0, true, 85);
      const file = async () => (await sql.query("select pg_relation_filenode($1) as n", [`${schema}.task`])).rows[0].n;
      const before = await file();
      await migrate(database, 0, true, 86);
      expect(await file()).toBe(before);
    });
  });

  it("a long reader delays the starting node, and the running nodes very little", async () => {
    // Creates the schema of the first version, and a node that uses it.
    const [first] = migrations as [(typeof migrations)[number]];
    const quoted = `"${schema}"`;
    await sql.query(`create schema ${schema}`);
    await sql.query(
      `create table ${schema}.migration (number int primary key, name text not null, applied_ms bigint not null)`,
    );
    await sql.query(first.sql(quoted));
    await sql.query(`insert into ${schema}.migration values (1, 'main', 0)`);
    await sql.query(`insert into ${schema}.cluster (created_ms) values (0)`);
    await sql.query(
      `insert into ${schema}.session (node, role, host, pid, version, timeout_ms, started_ms, seen_ms) values ('old', 'node', '', 1, '', 6000, 0, 0)`,
    );
    const reader = await sql.connect();
    try {
      await reader.query("begin");
      await reader.query(`select count(*) from ${schema}.session`);
      const starting = open({ failFast: false });
      await until("the migration waits for the reader", async () => {
        const { rows } = await sql.query(
          "select from pg_stat_activity where wait_event_type = 'Lock' and query like '%' || $1 || '%alter table%'",
          [schema],
        );
        const { rows: alters } = await sql.query(
          "select from pg_locks where not granted and mode = 'AccessExclusiveLock' and relation = to_regclass($1)",
          [`${schema}.session`],
        );
        return rows.length + alters.length > 0;
      });
      // Heartbeats continue while the migration waits. A heartbeat that waited for the migration would also wait for the reader.
      await sql.query(`update ${schema}.session set beat = beat + 1`);
      expect(await applied(), "the reader is still there").toEqual([1]);
      await reader.query("commit");
      await starting;
      expect(await applied()).toEqual(migrations.map(({ number }) => number));
    } finally {
      reader.release();
    }
  });
});
