import pg from "pg";
import { expect, it } from "vitest";
import { ask, here, json, schema, start, url } from "./process.ts";

it("a schema is planned, waited for and migrated as steps of their own; a node that may not do it is refused", async () => {
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

it("`restored` is refused while a process is at work, and names it; once it has stopped, or was killed, it is done", async () => {
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

it("`migrate --role` lets another role do the work, makes partitions ahead, and `doctor` says who makes more", async () => {
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
