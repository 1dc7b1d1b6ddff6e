/** Takes about a minute: there are some eighty command lines, and each starts a process. */
import pg from "pg";
import { describe, expect, it } from "vitest";
import { ask, type Ended, file, here, json, objects, schema, start, until, url } from "./process.ts";

describe("import --compare", () => {
  it("shows the times of source and task, uses no store, and writes the file if requested", async () => {
    await file("recurring.yml", "production:\n  digest: { class: Digest, schedule: every day at 5am Europe/Berlin }\n");
    await file("some.crontab", "*/10 * * * * /bin/true\n0 4 * * 1 /bin/date | /bin/cat\n");
    const [digest, crontab, refused] = (await Promise.all([
      start(["import", "solid-queue", "recurring.yml", "--compare", "--output", "digest.yaml"]).ended(),
      start(["import", "crontab", "some.crontab", "--compare", "--json"]).ended(),
      start(["import", "solid-queue", "recurring.yml", "--compare", "--output", "-"]).ended(),
    ])) as [Ended, Ended, Ended];
    expect([digest.code, digest.stdout]).toEqual([
      0,
      expect.stringMatching(
        /^digest: same {2}every day at 5am Europe\/Berlin\n {2}SOURCE +TASK\n(?: {2}\S.*\n){20}1 with /,
      ),
    ]);
    expect((await start(["diff", "digest.yaml", ...here()]).ended()).stderr).toContain("no Carillon has used schema");
    expect(crontab.code).toBe(1);
    expect(JSON.parse(crontab.stdout)).toMatchObject({
      compared: [{ name: "some-true", said: "*/10 * * * *", outcome: "same" }],
      remarks: [{ kind: "problem", source: "some.crontab:2" }],
    });
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("USAGE")]);
  });
});

describe("import crontab", () => {
  it("creates tasks whose programs a worker runs only if it allows them", async () => {
    await file("my.crontab", "* * * * * /bin/echo from cron\n0 4 * * * /bin/date | /bin/cat\n");
    const dry = await start(["import", "crontab", "my.crontab", "--user", "--dry-run", ...here()]).ended();
    expect(dry.code).toBe(1);
    expect(dry.stdout).toMatch(/^my\.crontab:2: CRONTAB_INVALID: .*shell/m);
    expect(dry.stdout).toContain("1 would be imported, 1 with problems");
    expect(await ask("tasks", "list")).toMatchObject({
      code: 4,
      stderr: expect.stringContaining("no Carillon has used schema"),
    });

    const real = await json("import", "crontab", "my.crontab", "--user", "--zone", "Europe/Berlin", "--group", "crons");
    expect(real.tasks).toMatchObject([{ command: { argv: ["/bin/echo", "from", "cron"] }, outcome: "new", line: 1 }]);
    const again = await json(
      "import",
      "crontab",
      "my.crontab",
      "--user",
      "--zone",
      "Europe/Berlin",
      "--group",
      "crons",
    );
    expect(again.tasks).toMatchObject([{ outcome: "unchanged" }]);
    const [{ name }] = real.tasks;

    const refusing = start(["worker", "--group", "crons", ...here()]);
    await refusing.says(/worker is ready/);
    expect(await ask("tasks", "run", name, "--wait")).toMatchObject({
      code: 1,
      stdout: expect.stringContaining("COMMAND_NOT_ALLOWED"),
    });
    await refusing.end("SIGTERM");

    const rehearsing = start(["worker", "--group", "crons", "--allow", "/bin/echo", "--rehearse", ...here()]);
    await rehearsing.says(/worker is ready/);
    const logs = async () => {
      const { run } = JSON.parse((await ask("tasks", "run", name, "--wait", "--json")).stdout);
      let lines: { message: string }[] = [];
      await until(async () => {
        lines = (await json("runs", "show", String(run))).logs;
        return lines.length > 0;
      });
      return lines.map(({ message }) => message).join("\n");
    };
    expect(await logs()).toMatch(/would run: .*\/bin\/echo from cron/);
    await rehearsing.end("SIGTERM");

    const allowing = start(["worker", "--group", "crons", "--allow", "/bin/echo", ...here()]);
    await allowing.says(/worker is ready/);
    expect(await logs()).toBe("from cron");
  });

  it("reports what was saved if an error or Ctrl-C interrupts it", async () => {
    const line = (program: string) => `0 4 * * * /bin/${program}\n`;
    await file("half.crontab", line("a"));
    await json("import", "crontab", "half.crontab", "--user");
    await file("half.crontab", ["a", "b", "c", "d"].map(line).join(""));
    const database = new pg.Client({ connectionString: url });
    await database.connect();
    try {
      await database.query(`set search_path to ${schema}`);
      await database.query(`create function refuse() returns trigger language plpgsql as
        $$ begin raise exception 'not you' using errcode = '42501'; end $$`);
      await database.query(
        "create trigger refuse before insert on task for each row when (new.name like '%-c') execute function refuse()",
      );
      const outcomes = ({ stdout }: { stdout: string }) =>
        JSON.parse(stdout).tasks.map(({ outcome }: { outcome: string }) => outcome);
      const refused = await ask("import", "crontab", "half.crontab", "--user", "--json");
      expect(refused).toMatchObject({ code: 4, stderr: expect.stringContaining("STORE_REFUSED") });
      expect(outcomes(refused)).toEqual(["unchanged", "new", "not imported", "not imported"]);
      const told = await ask("import", "crontab", "half.crontab", "--user");
      expect(told.stdout).toContain("0 new, 2 unchanged, 2 not imported, 0 with problems");

      await database.query("drop trigger refuse on task");
      await database.query("begin");
      await database.query("lock table task in exclusive mode");
      // This listener is registered before the program's own, so its output shows that the program has received the signal.
      const listener = 'process.on("SIGINT",()=>console.error("interrupted"))';
      const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(listener)}` };
      const importing = start(["import", "crontab", "half.crontab", "--user", "--json", ...here()], { env });
      await until(async () => {
        const sql = "select from pg_locks where not granted and relation = $1::regclass";
        return (await database.query(sql, [`${schema}.task`])).rows.length > 0;
      });
      importing.signal("SIGINT");
      // The signal arrives while the insert for the third line waits for the table lock.
      await importing.says(/interrupted/, "stderr");
      await database.query("commit");
      const interrupted = await importing.ended();
      expect(interrupted.code).toBe(130);
      expect(outcomes(interrupted)).toEqual(["unchanged", "unchanged", "new", "not imported"]);
    } finally {
      await database.end();
    }
  });

  it("refuses a missing file", async () => {
    const { code, stderr } = await start(["import", "crontab", "nowhere", "--dry-run"]).ended();
    expect(code).toBe(2);
    expect(stderr).toMatch(/^carillon: FILE_INVALID: nowhere cannot be read/);
  });
});

describe("invalid input", () => {
  it.each([
    ["a word that is no command", ["tasks", "lits"], "USAGE", "Did you mean list?"],
    ["an option that is none", ["dev", "--nope"], "USAGE", "carillon dev --help"],
    ["a missing argument", ["tasks", "next"], "USAGE", "carillon tasks next --help"],
    ["a number that is none", ["runs", "list", "-n", "few"], "USAGE", "carillon runs list --help"],
    ["a run that is no number", ["runs", "show", "abc"], "USAGE", "carillon runs list"],
    [
      "a time without an offset",
      ["tasks", "next", "x", "--after", "tomorrow", "--store", url],
      "USAGE",
      "2027-03-27T00:00:00Z",
    ],
    ["a payload that is no JSON", ["tasks", "run", "x", "--payload", "{x"], "PAYLOAD_NOT_JSON", "--payload"],
    ["a store of another kind", ["tasks", "list", "--store", "mysql://x"], "OPTION_INVALID", "postgres://"],
    ["a URL that cannot be read", ["tasks", "list", "--store", "postgres://[bad/x"], "OPTION_INVALID", "postgres://"],
    ["a schema that cannot be", ["tasks", "list", "--schema", "a-b"], "OPTION_INVALID", "letters"],
    ["a store that is empty", ["tasks", "list", "--store", ""], "USAGE", "carillon tasks list --help"],
    ["a task called diff", ["tasks", "show", "diff", "--bogus"], "USAGE", "carillon tasks show --help"],
    ["a time to wait, and no wait", ["tasks", "run", "x", "--timeout", "5m"], "USAGE", "--wait"],
    ["a duration that is none", ["runs", "list", "--since", "soon"], "DURATION_INVALID", "15m"],
    ["no such file", ["dev", "nosuch.ts"], "FILE_INVALID", "exports a Carillon"],
  ])("%s", async (_, args, code, hint) => {
    const [told, said] = (await Promise.all([[...args, "--json"], args].map((words) => start(words).ended()))) as [
      Ended,
      Ended,
    ];
    expect(objects(told.stderr)).toMatchObject([{ code, hint: expect.stringContaining(hint) }]);
    expect(told).toMatchObject({ code: 2, stdout: "" });
    expect(said.stderr).toMatch(new RegExp(`^carillon: ${code}: .+\\n {2}hint: .+\\n(?: {2}more: .+\\n)?$`));
  });

  it.each([
    ["exports nothing of use", "export const x = 1;", "FILE_INVALID", /bad\.ts exports no Carillon \(it exports x\)/],
    [
      "is not a program",
      "import { carillon } from 'carillon';\nconst a: = 1;",
      "FILE_INVALID",
      /hint: Look at bad\.ts:2/,
    ],
    [
      "throws",
      "import 'carillon';\n\nthrow new Error('no config');",
      "FILE_INVALID",
      /no config\n {2}hint: Look at bad\.ts:3/,
    ],
    ["imports what is not there", "import x from 'not-there';\nexport default x;", "FILE_INVALID", /not-there/],
    [
      "has a date that never comes",
      "import { cron } from 'carillon';\nexport default cron('0 0 30 2 *');",
      "CRON_NEVER",
      /bad\.ts: /,
    ],
    [
      "has an unknown zone",
      "import { cron } from 'carillon';\nexport default cron('0 0 * * *', { zone: 'Mars/Olympus' });",
      "ZONE_UNKNOWN",
      /Mars/,
    ],
    [
      "defines one name twice",
      "import { carillon } from 'carillon';\nexport const t = carillon();\nt.task('a', {}, () => 1);\nt.task('a', {}, () => 2);",
      "TASK_DUPLICATE",
      /task a is defined twice/,
    ],
  ])("a file that %s", async (_, text, code, words) => {
    await file("bad.ts", text);
    const told = await start(["dev", "bad.ts", ...here()]).ended();
    expect(told.code).toBe(2);
    expect(told.stderr).toContain(`carillon: ${code}: `);
    expect(told.stderr).toMatch(words);
    expect(told.stderr).not.toContain("    at ");
  });

  it("distinguishes not found, not reachable and refused", async () => {
    expect((await start(["server", ...here(), "--json"]).says(/is ready/))[0]).toBe("is ready");
    expect(await ask("tasks", "show", "nobody")).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("TASK_UNKNOWN"),
    });
    expect(await ask("runs", "show", "99999999")).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("RUN_UNKNOWN"),
    });
    const away = await start(["tasks", "list", "--store", "postgres://x@127.0.0.1:1/x"]).ended();
    expect(away).toMatchObject({ code: 4, stderr: expect.stringContaining("STORE_UNREACHABLE") });
    const refusedUrl = new URL(url);
    refusedUrl.pathname = "/no_such_database";
    const refused = await start(["tasks", "list", "--store", refusedUrl.href]).ended();
    expect(refused).toMatchObject({ code: 4, stderr: expect.stringContaining("STORE_REFUSED") });
    const nameless = new URL(url);
    nameless.password = "";
    const wanting = await start(["doctor", "--store", nameless.href]).ended();
    expect(wanting).toMatchObject({ code: 5, stdout: expect.stringMatching(/✗ store +STORE_REFUSED: /) });
    const client = new pg.Client(url);
    await client.connect();
    await client.query(`insert into ${schema}.migration values (999, 'future', 0)`);
    await client.end();
    expect(await ask("tasks", "list")).toMatchObject({ code: 4, stderr: expect.stringContaining("STORE_NEWER") });
    expect((await ask("doctor")).stdout).toMatch(/✗ schema +.* is at version 999/);
  });

  it("shows help with every command, and exits with 0", async () => {
    const { code, stdout } = await start(["--help"]).ended();
    expect(code).toBe(0);
    for (const name of ["dev", "server", "worker", "tasks", "runs", "import", "doctor", "nodes"])
      expect(stdout).toMatch(new RegExp(`^ {2}${name}\\b`, "m"));
    expect(await start(["tasks"]).ended()).toMatchObject({ code: 2, stdout: "" });
  });
});
