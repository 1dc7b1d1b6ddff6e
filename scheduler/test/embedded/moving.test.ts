import { randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { expect, test } from "vitest";
import { openEmbedded } from "../../src/embedded/index.ts";
import { carillon } from "../../src/library/carillon.ts";
import { every } from "../../src/schedule/schedule.ts";
import { dumpOver, dumpStore } from "../../src/store/postgres/dump/dump.ts";
import { loadStore } from "../../src/store/postgres/dump/load.ts";
import { migrate, newestKnown } from "../../src/store/postgres/migrate.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { skipNumbers } from "../../src/store/postgres/recovery/restored.ts";
import { withDatabase } from "../../src/store/postgres/with-database.ts";
import { inProcess } from "../support/in-process.ts";
import { machinePostgres } from "../support/servers.ts";
import { finallyDo, query, scratch, until } from "./stage.ts";

const schema = "carillon";
const by = { author: "test", reason: "to a server" };

async function emptyDatabase(): Promise<string> {
  const name = `moved_${randomBytes(5).toString("hex")}`;
  const { url } = machinePostgres();
  await query(url, `create database ${name}`);
  finallyDo(async () => void (await query(url, `drop database ${name} with (force)`)));
  return Object.assign(new URL(url), { pathname: `/${name}` }).href;
}

/** Fills a store with rows of every kind: ended, failed, claimed and waiting runs, a ledger, logs, a calendar, users and sealed secrets. */
async function fill(url: string): Promise<{ last: number }> {
  const options = { store: url, handleSignals: false, drain: "1s", secretKeys: randomBytes(32).toString("base64") };
  const tower = carillon(options);
  const ran: string[] = [];
  tower.task("good", { schedule: every("200ms"), misfire: "skip" }, (run) => {
    run.log.info('said \u2028 and \\ and "so"\n', { slot: run.id });
    ran.push("good");
    return { at: "the end", odd: null };
  });
  tower.task("bad", { retry: { attempts: 1 } }, () => {
    ran.push("bad");
    throw new Error("broken \\. \t");
  });
  tower.task("endless", {}, async (run) => {
    ran.push("endless");
    await new Promise((resolve) => run.signal.addEventListener("abort", resolve, { once: true }));
  });
  await tower.start();
  await tower.enqueue("bad", { of: 9_007_199_254_740_991 });
  await tower.enqueue("endless", null);
  const { runId: last } = await tower.enqueue("good", null, { in: "1h" });
  await until("each has run", async () => ran.includes("bad") && ran.includes("endless") && ran.length > 5);
  await until("they are in the history", async () => {
    const [row] = await query(
      url,
      `select count(*)::int as n, (select count(*)::int from ${schema}.run_log) as logs, (select count(*)::int from ${schema}.dead_letter) as dead from ${schema}.run_history`,
    );
    return Number(row?.n) > 3 && Number(row?.logs) > 2 && Number(row?.dead) > 0;
  });
  // Makes it look as if the process had vanished: its claim is still there, and its session is open.
  await query(
    url,
    `create table ${schema}.kept as select r.* from ${schema}.run r join ${schema}.task t on t.id = task_id where state = 3 and name = 'endless'`,
  );
  await tower.stop();
  const texts = [
    `update ${schema}.session set ended_ms = null, ended_why = null, swept = false where id = (select max(session_id) from ${schema}.kept)`,
    `delete from ${schema}.run where id in (select id from ${schema}.kept)`,
    `delete from ${schema}.run_history where id in (select id from ${schema}.kept)`,
    `insert into ${schema}.run select * from ${schema}.kept`,
    `drop table ${schema}.kept`,
    `insert into ${schema}.secret (name, version, tasks) values ('pin', 1, '{good,bad}')`,
    `insert into ${schema}.secret_version (secret_id, version, key_id, wrapped, sealed, author, reason, changed_ms)
     select id, 1, 'key', '\\x00ff0a5c', '\\x5c2e0a', 'a', 'b', 1 from ${schema}.secret`,
    `insert into ${schema}.calendar (name, version) values ('bank', 1)`,
    `insert into ${schema}.calendar_version (calendar_id, version, content, author, reason, changed_ms) select id, 1, '{"days": [1]}', 'a', 'b', 1 from ${schema}.calendar`,
    `insert into ${schema}.user_account (name, hash, role, created_ms, created_by) values ('ada', 'scrypt$1', 'admin', 1, 'b')`,
    `create table ${schema}.not_ours as select 1 as one`,
    `create sequence ${schema}.not_ours_number`,
    `insert into ${schema}.awaited (run_id, since_ms) values (1, 1)`,
  ];
  for (const text of texts) await query(url, text);
  return { last };
}

/**
 * By table: an expression for a row without the values that differ between servers. Transaction ids belong to one server, and versions of
 * users continue above those of the source.
 */
const rowOf: Readonly<Record<string, string>> = {
  run_log: "row(run_id, attempt, at_ms, level, message, fields)",
  user_account: "to_jsonb(t) - 'version'",
};

/** Returns all rows of these tables as text, by table. */
async function contents(url: string, tables: string[]): Promise<Record<string, unknown>> {
  const found: Record<string, unknown> = {};
  for (const table of tables)
    found[table] = (
      await query(url, `select (${rowOf[table] ?? "t"})::text as row from ${schema}.${table} t order by 1`)
    ).map(({ row }) => row);
  return found;
}

/** Tables that `loadStore` itself writes to. */
const changed = ["audit", "audit_chain", "cluster", "leadership", "session"];

test("a store moves completely from the embedded PostgreSQL to the machine's older one and back, and works there", async () => {
  const folder = await scratch();
  const [there, back] = [join(folder, "there.dump"), join(folder, "back.dump")];
  const source = await openEmbedded({ directory: join(folder, "source") });
  const { last } = await fill(source.url);
  const dumped = await dumpStore(source.url, schema, there);
  expect(dumped.openSessions, "of the process that vanished").toHaveLength(1);
  for (const table of [
    "task",
    "run",
    "run_history",
    "slot",
    "run_log",
    "dead_letter",
    "session",
    "secret_version",
    "calendar",
    "user_account",
  ])
    expect([table, (dumped.rows[table] ?? 0) > 0]).toEqual([table, true]);
  for (const table of ["not_ours", "signal", "awaited"]) expect(Object.keys(dumped.rows)).not.toContain(table);
  const [end = ""] = (await readFile(there, "utf8")).trimEnd().split("\n").slice(-1);
  const sequences = (JSON.parse(end) as { sequences: { name: string }[] }).sequences.map(({ name }) => name);
  expect(sequences).toEqual(expect.arrayContaining(["run_id", "session_id_seq"]));
  expect(sequences).not.toContain("not_ours_number");

  const server = await emptyDatabase();
  const loaded = await loadStore(server, schema, there, by);
  const tables = Object.keys(dumped.rows).filter((table) => !changed.includes(table));
  expect(loaded.rows).toEqual(dumped.rows);
  expect(await contents(server, tables)).toEqual(await contents(source.url, tables));
  expect(loaded.next.runId).toBeGreaterThan(last + 1_000_000);
  expect(await query(server, `select 1 from ${schema}.session where ended_ms is null`), "all are ended").toEqual([]);
  expect(await query(server, `select why from ${schema}.audit where act = 'restore'`)).toEqual([
    { why: "to a server" },
  ]);
  await expect(loadStore(server, schema, there, by)).rejects.toMatchObject({ code: "STORE_NOT_EMPTY" });

  const again = await dumpStore(server, schema, back);
  const target = await openEmbedded({ directory: join(folder, "target") });
  expect((await loadStore(target.url, schema, back, by)).rows).toEqual(again.rows);
  expect(await contents(target.url, tables)).toEqual(await contents(source.url, tables));

  const verified = await inProcess(["audit", "verify", "--store", target.url, "--json"]);
  expect(JSON.parse(verified.stdout), "the chain goes on, over both loads").toMatchObject({ holds: true, fault: null });

  const ran: { id: number; name: string }[] = [];
  const tower = carillon({ store: target.url, handleSignals: false, drain: "1s" });
  tower.task("good", { schedule: every("200ms"), misfire: "skip" }, ({ id }) => void ran.push({ id, name: "good" }));
  tower.task("endless", {}, ({ id }) => void ran.push({ id, name: "endless" }));
  await tower.start();
  const { runId } = await tower.enqueue("good", null);
  expect(runId).toBeGreaterThan(loaded.next.runId);
  await until(
    "the run of the ended session runs again, and new ones run",
    async () => ran.some(({ name }) => name === "endless") && ran.some(({ id }) => id === runId),
  );
  // A dump of a store in use is a consistent snapshot: each slot that ran has its run, and each run its slot, although runs are enqueued
  // meanwhile.
  const live = join(folder, "live.dump");
  let isDumped = false;
  const busy = (async () => {
    for (let n = 0; !isDumped; n++) await tower.enqueue("good", { n });
  })();
  const atWork = await dumpStore(target.url, schema, live);
  isDumped = true;
  await busy;
  expect(atWork.openSessions).toEqual([expect.stringContaining(`process ${process.pid} on`)]);
  const copy = await emptyDatabase();
  expect((await loadStore(copy, schema, live, by)).rows).toEqual(atWork.rows);
  const ids = `(select id, slot_ms, task_id from ${schema}.run union all select id, slot_ms, task_id from ${schema}.run_history)`;
  const [apart] = await query(
    copy,
    `select (select count(*)::int from ${schema}.slot l where outcome = 1 and run_id not in (select id from ${ids} r)) as slots,
            (select count(*)::int from ${ids} r where slot_ms is not null and not exists (
               select from ${schema}.slot l where l.task_id = r.task_id and l.slot_ms = r.slot_ms)) as runs,
            (select count(*)::int from ${ids} r where slot_ms is null) > 1 as enqueued,
            (select count(*)::int from (select id from ${ids} r group by id having count(*) > 1) r) as twice`,
  );
  expect(apart).toEqual({ slots: 0, runs: 0, enqueued: true, twice: 0 });
  const [twice] = await query(
    target.url,
    `select count(*)::int as n from (select 1 from ${schema}.run_history where slot_ms is not null group by task_id, slot_ms having count(*) > 1) r`,
  );
  expect(twice, "slots with two runs").toEqual({ n: 0 });
  await tower.stop();
  await Promise.all([source.release(), target.release()]);
});

test("a truncated, altered or newer dump file is refused, with its line, and nothing is created from it", async () => {
  const folder = await scratch();
  const url = await emptyDatabase();
  const [good, wrong] = [join(folder, "good"), join(folder, "wrong")];
  await expect(dumpStore(url, schema, good)).rejects.toMatchObject({ code: "STORE_UNSUPPORTED" });
  await (await openPostgres({ url, schema })).close();
  await dumpStore(url, schema, good);
  const text = await readFile(good, "utf8");
  const lines = text.split("\n");
  const refused = async (changedText: string) => {
    await writeFile(wrong, changedText);
    return loadStore(url, "moved", wrong, by).then(
      () => "loaded",
      ({ code, message }: { code: string; message: string }) => `${code} ${message}`,
    );
  };
  expect(await refused(lines.slice(0, -2).join("\n"))).toMatch(/^FILE_INVALID line \d+: /);
  expect(await refused(`${lines.slice(0, 9).join("\n")}\n`)).toBe(
    "FILE_INVALID line 10: the file was cut: its end is missing",
  );
  expect(await refused(text.slice(0, -1)), "the last line feed").toMatch(/^FILE_INVALID line \d+: it is no JSON/);
  expect(await refused(text.replace('"columns":["id","name"]', '"columns":["name","id"]'))).toMatch(
    /the header, the counts/,
  );
  expect(await refused(text.replace('["true",', '["false",'))).toMatch(
    /^FILE_INVALID line \d+: 1 rows of audit_chain stand here, and they are not those/,
  );
  expect(await refused("hello\n")).toMatch(/^FILE_INVALID line 1: it is no JSON/);
  expect(await refused(text.replace(/"migration":\d+/, '"migration":9999'))).toMatch(/^STORE_NEWER /);
  const client = new pg.Client(url);
  await client.connect();
  const { rows } = await client.query("select to_regnamespace('moved') as made");
  await client.end();
  expect(rows, "nothing was made").toEqual([{ made: null }]);
});

test("a failed load into an existing empty schema leaves nothing behind, and keeps the schema's own objects", async () => {
  const folder = await scratch();
  const url = await emptyDatabase();
  const file = join(folder, "good");
  await (await openPostgres({ url, schema })).close();
  await dumpStore(url, schema, file);
  for (const text of [
    "create schema moved",
    "create function moved.kept() returns int language sql as 'select 1'",
    "create type moved.mood as enum ('good')",
    // The trigger adds a constraint that refuses the dump's rows, after the migrations have created the tables.
    `create function public.refuse_rows() returns event_trigger language plpgsql as $$
       begin if exists (select from pg_event_trigger_ddl_commands() where object_identity = 'moved.moved_slot') then
         alter table moved.cluster add constraint never check (false) not valid; end if; end $$`,
    "create event trigger refuse_rows on ddl_command_end when tag in ('CREATE TABLE') execute function public.refuse_rows()",
  ])
    await query(url, text);
  await expect(loadStore(url, "moved", file, by)).rejects.toThrow("never");
  const left = await query(
    url,
    `select relname as name from pg_class where relnamespace = 'moved'::regnamespace
     union all select proname from pg_proc where pronamespace = 'moved'::regnamespace
     union all select typname from pg_type where typnamespace = 'moved'::regnamespace and typtype = 'e'`,
  );
  expect(left).toEqual([{ name: "kept" }, { name: "mood" }]);
  await query(url, "drop event trigger refuse_rows");
  const { rows } = await loadStore(url, "moved", file, by);
  expect(rows.cluster).toBe(1);
});

test("a dump of an older schema version is loaded as that version, and migrated", async () => {
  const folder = await scratch();
  const url = await emptyDatabase();
  const file = join(folder, "older");
  const before = 42;
  await withDatabase({ url, schema: "older" }, async (database) => {
    await migrate(database, Date.now(), true, before);
    await expect(dumpStore(url, "older", file)).rejects.toMatchObject({ code: "STORE_OLDER" });
    await query(url, "insert into older.worker_group (name) values ('of-before')");
    await query(
      url,
      `insert into older.task (name, version, group_id, definition, definition_text, gate, created_ms, changed_ms)
       select 'nightly', 7, id, '{"name": "nightly"}', '{}', 0, 1, 2 from older.worker_group where name = 'of-before'`,
    );
    await expect(skipNumbers(url, "older", { ...by, nowMs: Date.now() })).rejects.toMatchObject({
      code: "STORE_OLDER",
      hint: expect.stringContaining("carillon migrate"),
    });
    const client = await database.connect();
    await dumpOver(client, database.schema, { schema: "older", migration: before, path: file });
    await client.end();
  });
  const loaded = await loadStore(url, "loaded", file, by);
  expect([loaded.header.migration, loaded.migration]).toEqual([before, newestKnown]);
  expect(await query(url, "select name, version, changed_ms from loaded.task")).toEqual([
    { name: "nightly", version: 7, changed_ms: "2" },
  ]);
  const [floor] = await query(url, "select version_floor from loaded.cluster");
  expect(floor?.version_floor, "numbers are set forward in columns that the file's version had not").toBe(1_000);
});
