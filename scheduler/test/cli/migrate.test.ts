import { join } from "node:path";
import pg from "pg";
import { expect, it } from "vitest";
import { ask, folder, here, json, rows, schema, start, url } from "./process.ts";

it("a schema is planned, awaited and migrated in separate steps; a node that may not migrate is refused", async () => {
  const waiting = start(["migrate", "--wait", ...here()]);
  const [planned, refused] = await Promise.all([
    ask("migrate", "--plan"),
    ask("server", "--no-migrate", "--listen", "127.0.0.1:0"),
  ]);
  expect([planned.code, planned.stdout]).toEqual([2, expect.stringMatching(/version 0 would be \d+\n {2}0001 main\n/)]);
  expect([refused.code, refused.stderr]).toEqual([4, expect.stringContaining("STORE_OLDER")]);
  const { from, to, applied } = await json("migrate");
  expect([from, applied[0], applied.at(-1).number]).toEqual([0, { number: 1, name: "main" }, to]);
  expect((await waiting.ended()).code).toBe(0);
  const [again, next] = await Promise.all([ask("migrate", "--plan"), json("restored", "--reason", "the disk of db-1")]);
  expect([again.code, again.stdout]).toEqual([0, expect.stringMatching(/is at version \d+: nothing to do\n$/)]);
  expect(next).toEqual({ runId: 1_000_000_002, fence: 1_000_000_002, term: 1_000_001 });
});

it("`restored` is refused while a process runs, which it names, and is done once the process has ended", async () => {
  const server = start(["server", "--listen", "127.0.0.1:0", "--name", "at-work", ...here()]);
  await server.says(/listening|http:/i);
  const refused = await ask("restored", "--reason", "too early");
  expect([refused.code, refused.stdout]).toEqual([4, ""]);
  expect(refused.stderr).toMatch(
    /STORE_IN_USE: .*node at-work \(process \d+ on .*\n.*hint: Nothing was changed\. Stop these/,
  );
  await server.end("SIGKILL");
  const done = await ask("restored", "--reason", "the disk of db-1");
  expect([done.code, done.stdout]).toEqual([0, expect.stringContaining("Nodes may start now.")]);
});

it("`migrate --role` lets another role run nodes and creates partitions ahead; `doctor` says who creates more", async () => {
  const role = `${schema}_app`;
  const sql = new pg.Client(url);
  await sql.connect();
  try {
    await sql.query(`create role ${role}`);
    const done = await ask("migrate", "--role", role, "--days", "20");
    expect([done.code, done.stderr]).toEqual([0, ""]);
    expect(done.stdout).toMatch(
      /\npartitions of history: \d+ made, 0 dropped\nrole cli_\w+_app may do the work on schema/,
    );
    const store = `${url}?options=${encodeURIComponent(`-c role=${role}`)}`;
    const asRole = ["--store", store, "--schema", schema];
    const server = start(["server", "--listen", "127.0.0.1:0", ...asRole]);
    await server.says(/listening|http:/i);
    const { checks } = JSON.parse((await start(["doctor", "--json", ...asRole]).ended()).stdout);
    expect(checks.find(({ what }: { what: string }) => what === "partitions")).toMatchObject({
      verdict: "good",
      found: expect.stringMatching(new RegExp(`^made for 20 d ahead; .* makes them, ${role} may not$`)),
    });
    const readiness = JSON.parse((await start(["doctor", "--production", "--json", ...asRole]).ended()).stdout);
    const verdicts = readiness.checks.map(({ what, verdict }: { what: string; verdict: string }) => [what, verdict]);
    const expected = { "a server": "good", way: "good", role: "good", planners: "problem", alarms: "problem" };
    expect(Object.fromEntries(verdicts), "one node, by a role without rights of its own").toMatchObject(expected);
    await server.end("SIGTERM");
    const again = await json("migrate", "--role", role);
    expect(again).toMatchObject({ applied: [], partitions: { created: 0, dropped: 0 }, role });
    const wrong = await ask("migrate", "--role", "nobody_at_all");
    expect([wrong.code, wrong.stderr]).toEqual([
      4,
      expect.stringContaining("STORE_REFUSED: there is no role nobody_at_all"),
    ]);
  } finally {
    await sql.query(`drop owned by ${role} cascade; drop role ${role}`);
    await sql.end();
  }
});

it("`migrate` fails on a newer schema, unless that supports this code, which is then reported", async () => {
  const { to } = await json("migrate");
  await rows(
    "insert into $s.migration (number, name, applied_ms, serves) values ($1, 'of tomorrow', 0, $2)",
    to + 1,
    to,
  );
  const said = `is at version ${to + 1}, newer than this Carillon's ${to}, which may work beside it: nothing to do\n`;
  for (const how of [[], ["--plan"], ["--wait"]]) {
    const { code, stdout } = await ask("migrate", ...how);
    expect([how, code, stdout]).toEqual([how, 0, expect.stringContaining(said)]);
  }
  const doctor = JSON.parse((await ask("doctor", "--json")).stdout);
  expect(doctor.checks).toContainEqual(expect.objectContaining({ what: "schema", verdict: "remark" }));
  expect(doctor.checks, "it reads such a schema").toContainEqual(expect.objectContaining({ what: "leader" }));
  await rows("update $s.migration set serves = number where number = $1", to + 1);
  for (const how of [[], ["--plan"], ["--wait"]]) {
    const { code, stdout, stderr } = await ask("migrate", ...how);
    expect([how, code, stdout]).toEqual([how, 4, ""]);
    expect(stderr).toContain(`STORE_NEWER: the database is at version ${to + 1}, this Carillon knows ${to}`);
  }
});

it("partitions missing after a killed `migrate` are planned, awaited by a role without rights, and created", async () => {
  const role = `${schema}_app`;
  await json("migrate");
  const names = await rows(
    "select relname as name from pg_class where relnamespace = '$s'::regnamespace and relispartition and relkind = 'r'",
  );
  await rows(names.map(({ name }) => `drop table $s.${name};`).join("\n"));
  const planned = await ask("migrate", "--plan");
  expect([planned.code, planned.stdout]).toEqual([
    2,
    expect.stringMatching(/ is at version \d+\npartitions of history: \d+ are missing and would be made\n$/),
  ]);
  expect((await ask("migrate", "--wait")).code, "this role may make them").toBe(0);
  await rows(
    `create role ${role}; grant usage on schema $s to ${role}; grant select on all tables in schema $s to ${role}`,
  );
  try {
    const store = `${url}?options=${encodeURIComponent(`-c role=${role}`)}`;
    const waiting = start(["migrate", "--wait", "--store", store, "--schema", schema]);
    const made = await ask("migrate");
    expect(made.stdout).toMatch(/ is at version \d+\npartitions of history: \d+ made, 0 dropped\n$/);
    expect((await waiting.ended()).code).toBe(0);
    const again = await ask("migrate", "--plan");
    expect([again.code, again.stdout]).toEqual([0, expect.stringContaining("nothing to do")]);
  } finally {
    await rows(`drop owned by ${role} cascade; drop role ${role}`);
  }
});

it("`store dump` writes the store to a file, and `store load` restores it into an empty schema", async () => {
  await json("migrate");
  const path = join(folder, "carillon.dump");
  const dumped = await json("store", "dump", path);
  expect(dumped).toMatchObject({ file: path, rows: { cluster: 1, leadership: 1 }, openSessions: [] });
  const target = `${schema}_moved`;
  const load = (...args: string[]) =>
    start(["store", "load", path, "--store", url, "--schema", target, ...args]).ended();
  try {
    const loaded = await load("--reason", "to another schema");
    expect([loaded.code, loaded.stderr]).toEqual([0, ""]);
    expect(loaded.stdout).toMatch(
      /^\d+ rows: .*cluster 1.*\nschema \S+ of .* has all of .*, counted, and is at version \d+\n/,
    );
    expect(loaded.stdout).toContain(
      "numbers go on from: run 1000000002, fence 1000000002, term 1000001. Nodes may start",
    );
    const again = await load();
    expect([again.code, again.stderr]).toEqual([4, expect.stringContaining("STORE_NOT_EMPTY")]);
  } finally {
    await rows(`drop schema if exists ${target} cascade`);
  }
});
