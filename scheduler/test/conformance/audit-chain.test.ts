import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { seeded } from "../../src/base/random.ts";
import { every } from "../../src/schedule/schedule.ts";
import { Database } from "../../src/store/postgres/database.ts";
import { migrate } from "../../src/store/postgres/migrate.ts";
import { defineTask } from "../../src/task/task.ts";
import { ApiStage } from "../support/api-stage.ts";
import { inProcess, type Said } from "../support/in-process.ts";
import { postgres } from "../support/servers.ts";
import { asCode, change, openStage, recordingLog, type Stage } from "../support/store-stage.ts";

let folder = "";
let stage: Stage;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "carillon-audit-"));
  stage = await openStage(postgres());
});
afterAll(async () => {
  await stage.close();
  await rm(folder, { recursive: true });
});

const at = (schema: string) => ["--store", postgres().url, "--schema", schema];
const audit = (words: string[], where = at(stage.schema), environment: Record<string, string> = {}): Promise<Said> =>
  inProcess(["audit", ...words, ...where], environment);

interface Verdict {
  code: number;
  holds: boolean;
  rows: number;
  olderRows: number;
  head: string;
  fault: { seq: number | null; what: string } | null;
}
async function verify(words: string[] = [], where?: string[], environment?: Record<string, string>): Promise<Verdict> {
  const { code, stdout, stderr } = await audit(["verify", ...words, "--json"], where, environment);
  expect(stderr).toBe("");
  return { code, ...(JSON.parse(stdout) as Omit<Verdict, "code">) };
}
const holds = { code: 0, holds: true, fault: null };
const fails = (seq: number | null, what: RegExp) => ({
  code: 5,
  holds: false,
  fault: { seq, what: expect.stringMatching(what) },
});
async function exported(where?: string[], environment?: Record<string, string>): Promise<string> {
  const { code, stdout, stderr } = await audit(["export"], where, environment);
  expect([code, stderr]).toEqual([0, ""]);
  const path = join(folder, `${Math.random()}.jsonl`);
  await writeFile(path, stdout);
  return path;
}

const made = (name: string, on = stage) =>
  on.store.access.createUser({ name, hash: "none", role: "viewer" }, change(on.nowMs));
/** Writes an audit row as a version of Carillon without the hash chain did. */
const written = (named: string, atMs: number, on = stage) =>
  on.rows(
    `insert into $s.audit (at_ms, who, act, about, named, before, after, why)
     values ($2, 'older', 'edit', 'task', $1, '{"n": 1.50, "t": "é\u2028"}', null, '')`,
    [named, atMs],
  );

describe("the audit chain", () => {
  it("contains every change of concurrent writers, including older versions, and no writer waits for another", async () => {
    const other = await stage.another();
    const slow = await stage.sql.connect();
    await slow.query("begin");
    await slow.query(
      `insert into ${stage.schema}.audit (at_ms, who, act, about, named, why) values (1, 'slow', 'edit', 'task', 'slow', '')`,
    );
    await Promise.all([
      ...Array.from({ length: 20 }, (_, n) => made(`one-${n}`)),
      ...Array.from({ length: 20 }, (_, n) =>
        other.access.createUser({ name: `two-${n}`, hash: "none", role: "viewer" }, change(stage.nowMs)),
      ),
      ...Array.from({ length: 10 }, (_, n) => written(`older-${n}`, stage.nowMs)),
      // One transaction writes many rows.
      stage.store.audit.record(
        Array.from({ length: 300 }, (_, n) => ({
          atMs: 1,
          who: "test",
          act: "run",
          about: "task" as const,
          named: `t${n}`,
          before: null,
          after: null,
          why: "",
        })),
      ),
    ]);
    expect(await verify()).toMatchObject({ ...holds, rows: 350 });
    await slow.query("commit");
    slow.release();
    expect(await verify()).toMatchObject({ ...holds, rows: 351 });
    const last = await stage.one("select who from $s.audit where seq = 351");
    expect(last, "in the order of the commits").toEqual({ who: "slow" });
  });

  it("never blocks a change: a row written while the chain is locked is added by the next change or check", async () => {
    const own = await openStage(postgres());
    const holder = await own.sql.connect();
    try {
      const placed = () =>
        own.rows("select named, seq from $s.audit where named like 'while-%' or named = 'after' order by id");
      const held = async (name: string) => {
        await holder.query("begin");
        await holder.query(`select from ${own.schema}.audit_chain for update`);
        await made(name, own);
        await holder.query("commit");
      };
      await held("while-1");
      expect(await placed()).toEqual([{ named: "while-1", seq: null }]);
      await made("after", own);
      expect((await placed()).map(({ seq }) => Number(seq))).toEqual([1, 2]);
      await held("while-2");
      expect(await verify([], at(own.schema))).toMatchObject({ ...holds, rows: 3 });
      await held("while-3");
      await own.store.audit.chainSkipped();
      await own.store.audit.chainSkipped();
      expect((await placed()).map(({ seq }) => Number(seq))).toEqual([1, 2, 3, 4]);
      expect(await verify([], at(own.schema))).toMatchObject({ ...holds, rows: 4 });
    } finally {
      holder.release();
      await own.close();
    }
  });

  it("has new tasks in it from the statement that creates them, unless the chain is locked or the transaction goes on", async () => {
    const own = await openStage(postgres());
    const holder = await own.sql.connect();
    try {
      const create = (name: string) =>
        own.store.tasks.saveAll(
          Array.from({ length: 60 }, (_, n) => defineTask(`${name}-${n}`, { description: 'é\u2028 "quoted" \\ 1.50' })),
          { author: 'ann "é"', reason: "for\na \\ test", nowMs: own.nowMs },
          asCode,
        );
      const placed = async (name: string) =>
        own.one(
          "select count(*)::int as rows, min(seq) as first, max(seq) as last from $s.audit where named like $1 || '-%'",
          [name],
        );
      await create("one");
      expect(await placed("one")).toEqual({ rows: 60, first: 1, last: 60 });
      const { untouched } = await own.one(
        "select bool_and(xmax = 0) and min(ctid)::text = '(0,1)' as untouched from $s.audit",
      );
      expect(untouched, "no row was written twice").toBe(true);
      await create("one");
      expect(await placed("one"), "nothing is created").toEqual({ rows: 60, first: 1, last: 60 });

      await holder.query("begin");
      await holder.query(`select from ${own.schema}.audit_chain for update`);
      await create("held");
      expect(await placed("held")).toEqual({ rows: 60, first: null, last: null });
      await holder.query("commit");
      await create("next");
      expect([await placed("held"), await placed("next")]).toEqual([
        { rows: 60, first: 61, last: 120 },
        { rows: 60, first: 121, last: 180 },
      ]);

      await own.task("many");
      await holder.query("begin");
      const schedules = Array.from({ length: 60 }, (_, n) =>
        defineTask(`many:${n}`, { of: "many", schedule: every("1h") }),
      );
      await own.store.tasks.saveSchedules("many", schedules, change(own.nowMs), holder);
      await made("meanwhile", own);
      await holder.query("commit");
      expect(await own.rows("select named, seq from $s.audit where seq in (181, 182, 183, 242) order by seq")).toEqual([
        { named: "many", seq: 181 },
        { named: "meanwhile", seq: 182 },
        { named: "many:0", seq: 183 },
        { named: "many:9", seq: 242 },
      ]);
      expect(await verify([], at(own.schema))).toMatchObject({ ...holds, rows: 242 });
    } finally {
      holder.release();
      await own.close();
    }
  });

  it("verifies alike in the store and in its exported file, which any tool can check", async () => {
    const path = await exported();
    const { head } = await verify();
    expect(await verify([path], [])).toMatchObject({ ...holds, rows: 351, head });
    expect(await verify(["--head", head])).toMatchObject(holds);
    const text = await readFile(path, "utf8");
    const whole = text.trimEnd().split("\n");
    const tampered = async (lines: string[]) => {
      await writeFile(path, `${lines.join("\n")}\n`);
      return verify([path], []);
    };
    expect(await tampered(whole.slice(0, -1))).toMatchObject(fails(null, /last line/));
    expect(await tampered(whole.filter((_, n) => n !== 5))).toMatchObject(fails(5, /row 5 is missing/));
    const [first = "", ...rest] = whole;
    expect(await tampered([first, rest[0] ?? "", rest[2] ?? "", rest[1] ?? "", ...rest.slice(3)])).toMatchObject(
      fails(2, /missing: 3 comes next/),
    );
    expect(await tampered(whole.map((line) => line.replace('"slow"', '"ann"')))).toMatchObject(
      fails(351, /does not fit its hash/),
    );
    await writeFile(path, text.replace('{"seq":7', '{"seq":x'));
    const broken = await audit(["verify", path], []);
    expect(broken).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/FILE_INVALID: .*line 8, is no line of JSON/),
    });
    const wrong = await audit(["verify", "--head", "7"]);
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringMatching(/OPTION_INVALID: --head cannot be "7"/) });
  });
});

describe("tampering with database rights", () => {
  /** Runs `work` and then restores all rows of the audit log and of the chain, so that the next test finds them unchanged. */
  const undone = async (work: () => Promise<void>) => {
    await stage.rows("create table $s.kept_rows as select * from $s.audit");
    await stage.rows("create table $s.kept_chain as select * from $s.audit_chain");
    try {
      await work();
    } finally {
      await stage.rows("truncate $s.audit, $s.audit_chain");
      await stage.rows("insert into $s.audit overriding system value select * from $s.kept_rows");
      await stage.rows("insert into $s.audit_chain select * from $s.kept_chain");
      await stage.rows("drop table $s.kept_rows, $s.kept_chain");
    }
  };
  const rechained = (from: number) =>
    stage.rows(`do $d$ declare r $s.audit; h bytea; begin
      select hash into h from $s.audit where seq = ${from - 1};
      for r in select * from $s.audit where seq >= ${from} order by seq loop
        h := sha256(h || convert_to($s.audit_content(r), 'UTF8'));
        update $s.audit set hash = h where id = r.id;
      end loop;
      update $s.audit_chain set hash = h;
    end $d$`);

  it.each<[what: string, statements: string[], seq: number | null, told: RegExp]>([
    ["changed a row", ["update $s.audit set why = 'other' where seq = 7"], 7, /row 7 does not fit its hash/],
    [
      "changed a row and its hash",
      [
        "update $s.audit set who = 'ann' where seq = 7",
        `update $s.audit a set hash = sha256((select hash from $s.audit where seq = 6) || convert_to($s.audit_content(a), 'UTF8')) where seq = 7`,
      ],
      8,
      /the row before it was/,
    ],
    ["removed a row", ["delete from $s.audit where seq = 7"], 7, /row 7 is missing: 8 comes next/],
    [
      "exchanged two rows",
      [
        "update $s.audit set seq = case seq when 7 then -7 else -9 end where seq in (7, 9)",
        "update $s.audit set seq = case seq when -7 then 9 else 7 end where seq < 0",
      ],
      7,
      /row 7 does not fit/,
    ],
    [
      "put a row between others",
      [
        "update $s.audit set seq = -seq - 1 where seq >= 7",
        "update $s.audit set seq = -seq where seq < 0",
        `insert into $s.audit (at_ms, who, act, about, named, why, seq, hash)
         select 1, 'ann', 'edit', 'task', 'x', '', 7, sha256('x')`,
      ],
      7,
      /row 7 does not fit/,
    ],
    [
      "cut the newest rows off",
      ["delete from $s.audit where seq > 300"],
      null,
      /store's head is row 351, and the last row is 300/,
    ],
    [
      "wrote a row past the trigger",
      [
        "alter table $s.audit disable trigger chained",
        "insert into $s.audit (at_ms, who, act, about, named, why) values (1, 'ann', 'edit', 'task', 'x', '')",
        "alter table $s.audit enable trigger chained",
      ],
      null,
      /1 rows have no place/,
    ],
    [
      "removed the oldest rows and moved the anchor",
      [
        "update $s.audit_chain set anchor_seq = 10, anchor_hash = (select hash from $s.audit where seq = 10)",
        "delete from $s.audit where seq <= 10",
      ],
      null,
      /rows up to 10 are gone, and no entry says/,
    ],
  ])("%s: the first row that does not match is named", async (_, statements, seq, told) => {
    await undone(async () => {
      for (const statement of statements) await stage.rows(statement);
      expect(await verify()).toMatchObject(fails(seq, told));
      const { code, stdout, stderr } = await audit(["export"]);
      expect([code, stderr]).toEqual([5, expect.stringMatching(told)]);
      expect(stdout).toContain('{"end":true');
    });
    expect(await verify()).toMatchObject(holds);
  });

  it("cut rows or a rewritten chain without traces are detected with a head that was kept elsewhere", async () => {
    const { head } = await verify();
    await undone(async () => {
      await stage.rows("delete from $s.audit where seq > 300");
      await stage.rows("update $s.audit_chain set seq = 300, hash = (select hash from $s.audit where seq = 300)");
      expect(await verify(), "nothing else tells").toMatchObject({ ...holds, rows: 300 });
      expect(await verify(["--head", head])).toMatchObject(
        fails(null, /given head is row 351, and the last row is 300/),
      );
    });
    await undone(async () => {
      await stage.rows("update $s.audit set who = 'ann' where seq = 40");
      await rechained(40);
      expect(await verify(), "nothing else tells").toMatchObject({ ...holds, rows: 351 });
      expect(await verify(["--head", head])).toMatchObject(fails(351, /another hash than the given head/));
    });
    expect(await verify(["--head", head])).toMatchObject(holds);
  });
});

it("old rows are pruned, and the remaining ones still verify, also against an earlier head", async () => {
  const own = await openStage(postgres());
  try {
    const where = at(own.schema);
    for (let n = 0; n < 5; n++) await written(`old-${n}`, 1_000, own);
    const { head: old } = await verify([], where);
    for (let n = 0; n < 3; n++) await made(`new-${n}`, own);
    const { head } = await verify([], where);
    const pruned = await audit(["prune", "1d", "--reason", "as agreed", "--json"], where);
    expect([pruned.stderr, JSON.parse(pruned.stdout)]).toMatchObject(["", { removed: 5, anchor: old }]);
    expect(await verify([], where)).toMatchObject({ ...holds, rows: 4 });
    expect(await verify(["--head", head], where)).toMatchObject(holds);
    expect(await verify([await exported(where)], [])).toMatchObject({ ...holds, rows: 4 });
    const [entry] = await own.store.audit.list({ act: "prune" }, 1e9, 1);
    expect(entry).toMatchObject({ about: "audit", why: "as agreed", after: { anchor: old, rows: 5 } });
    const again = await audit(["prune", "1d", "--json"], where);
    expect(JSON.parse(again.stdout), "nothing is left that is as old").toMatchObject({ removed: 0, anchor: old });
    const before = `1:${"0".repeat(64)}`;
    expect(await verify(["--head", before], where)).toMatchObject(
      fails(null, /row 1, and the rows up to 5 were pruned/),
    );
  } finally {
    await own.close();
  }
});

it("rows from before the chain are counted and covered by one digest, until they are pruned", async () => {
  const schema = `audit_older_${Math.floor(Math.random() * 1e9)}`;
  const { log } = recordingLog();
  const options = { url: postgres().url, schema, clock: systemClock, random: seeded(1), log, connectionsMax: 2 };
  const database = new Database(options);
  const sql = new pg.Pool({ connectionString: postgres().url, max: 1 });
  try {
    await migrate(database, 1, true, 49);
    for (const named of ["a", "b", "c"])
      await sql.query(
        `insert into ${schema}.audit (at_ms, who, act, about, named, before, why) values (1, 'ann', 'edit', 'task', $1, '{"n": 1.50}', '')`,
        [named],
      );
    await migrate(database, 2);
    await sql.query(
      `insert into ${schema}.audit (at_ms, who, act, about, named, why) values (1, 'ann', 'edit', 'task', 'd', '')`,
    );
    const where = at(schema);
    expect(await verify([], where)).toMatchObject({ ...holds, rows: 1, olderRows: 3 });
    const path = await exported(where);
    expect(await verify([path], [])).toMatchObject({ ...holds, rows: 1, olderRows: 3 });
    await sql.query(`update ${schema}.audit set who = 'bea' where named = 'b'`);
    expect(await verify([], where)).toMatchObject(fails(null, /a row from before the chain was changed/));
    await sql.query(`update ${schema}.audit set who = 'ann' where named = 'b'`);
    expect(await verify([], where)).toMatchObject(holds);
    await sql.query(`delete from ${schema}.audit where named = 'b'`);
    expect(await verify([], where)).toMatchObject(
      fails(null, /there were 3 rows from before the chain, and 2 are left/),
    );
    const pruned = await audit(["prune", "1d", "--json"], where);
    expect(JSON.parse(pruned.stdout)).toMatchObject({ removed: 3 });
    expect(await verify([], where)).toMatchObject({ ...holds, rows: 2, olderRows: 0 });
  } finally {
    await database.close();
    await sql.query(`drop schema if exists ${schema} cascade`);
    await sql.end();
  }
});

it("a server returns the same as its store, to admins only", async () => {
  const own = await new ApiStage().open();
  try {
    const server = ["--server", own.urlOf()];
    const as = (role: "admin" | "editor") => ({ CARILLON_TOKEN: own.tokens[role], XDG_CONFIG_HOME: folder });
    const byStore = await verify([], at(own.schema));
    expect(await verify([], server, as("admin"))).toEqual(byStore);
    expect(await readFile(await exported(server, as("admin")), "utf8")).toBe(
      await readFile(await exported(at(own.schema)), "utf8"),
    );
    await own.rows("update $s.audit set why = 'x' where seq = 2");
    expect(await verify([], server, as("admin"))).toMatchObject(fails(2, /row 2 does not fit/));
    const denied = await audit(["verify"], server, as("editor"));
    expect(denied).toMatchObject({ code: 4, stderr: expect.stringContaining("ACCESS_DENIED") });
    const prune = await audit(["prune", "1d"], server, as("admin"));
    expect(prune).toMatchObject({ code: 4, stderr: expect.stringContaining("STORE_NEEDED") });
  } finally {
    await own.close();
  }
});
