import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { userCalled } from "../../src/access/access-store.ts";
import { hashOfRecoveryCode, makeFactorSecret, makeRecoveryCodes } from "../../src/access/second-factor.ts";
import { makeSecretKey } from "../../src/access/secrets/secret-keys.ts";
import { clusterByServer } from "../../src/cli/cluster/by-server.ts";
import type { RunRecord } from "../../src/run/run-record.ts";
import { cron } from "../../src/schedule/schedule.ts";
import { ApiStage } from "../support/api-stage.ts";
import { answered, inProcess, typed } from "../support/in-process.ts";
import { said } from "../support/remote-stage.ts";
import { postgres } from "../support/servers.ts";
import { codeOf, wrongCodeOf } from "../support/totp.ts";

/** Parses each line of the output as JSON, without the field `seen`, which differs from call to call. */
const objects = (text: string) =>
  text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line, (key, value) => (key === "seen" ? undefined : value)));
const withoutTimes = (text: string) =>
  text
    .replace(/(PostgreSQL|the server) at \S+/, "…")
    .replace(/\d+(\.\d+)? (ms|s|min|h)( \d+ (s|min))?( ago)?|now/g, "…")
    .replace(/ +/g, " ");
const stage = new ApiStage();
let folder = "";
let key = "";
const runs = { good: 0, bad: 0, waiting: 0 };

const store = () => ["--store", postgres().url, "--schema", stage.schema];
const token = (role: keyof ApiStage["tokens"] = "admin") => ({
  CARILLON_TOKEN: stage.tokens[role],
  XDG_CONFIG_HOME: folder,
});
const server = () => ["--server", stage.urlOf()];
const byServer = (...args: string[]) => inProcess([...args, ...server()], token());
const jsonOf = async (...args: string[]) => JSON.parse((await byServer(...args, "--json")).stdout);

/** Runs a command against the store and against the server, and expects equal output, both as JSON and as text. */
const both = async (...args: string[]) => {
  for (const form of [["--json"], []]) {
    const here = await inProcess([...args, ...form, ...store()]);
    const there = await byServer(...args, ...form);
    const words = ({ code, stdout }: typeof here) => [code, form.length > 0 ? objects(stdout) : withoutTimes(stdout)];
    expect([args, ...words(there)]).toEqual([args, ...words(here)]);
  }
  return byServer(...args);
};

async function ended(task: string, verdict: object): Promise<number> {
  const session = await stage.join(key, { tasks: [task] });
  const run = await stage.claimed(key, session, task, { n: 1 });
  const logs = [{ runId: run.runId, fence: run.fence, agoMs: 1, message: "ding" }];
  await stage.poll(key, { session, logs, verdicts: [said(run, { startedAgoMs: 5, ...verdict })], leave: true });
  return run.runId;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "carillon-server-"));
  // The secret keys are needed only by the server, not by the commands that use it.
  process.env.CARILLON_SECRET_KEYS = makeSecretKey();
  await stage.open();
  delete process.env.CARILLON_SECRET_KEYS;
  key = await stage.key("worker");
  await byServer("calendars", "set", "de", "--days", "2030-12-25", "--zone", "Europe/Berlin", "--reason", "feasts");
  const schedule = cron("0 3 * * *", { zone: "Europe/Berlin" });
  await stage.task("nightly", { schedule, calendar: { name: "de" }, timeout: "1h" });
  await stage.task("order");
  await stage.task("mail", { after: "order" });
  await stage.task("nobody", { group: "elsewhere" });
  runs.good = await ended("order", { outcome: "succeeded", result: { n: 1 } });
  runs.bad = await ended("order", { outcome: "failed", error: { message: "no route to bank", stack: "at bank.ts:1" } });
  const handle = await stage.server.enqueue("nobody", { n: 2 }, { in: "1h" });
  runs.waiting = handle.runId;
});
afterAll(async () => {
  await stage.close();
  await rm(folder, { recursive: true, force: true });
});

describe("a CLI command", () => {
  it("prints the same through a server as directly on the store, as text and as JSON", async () => {
    const asked = [
      ["tasks", "list"],
      ["tasks", "show", "nightly"],
      ["tasks", "show", "order"],
      ["tasks", "next", "nightly"],
      ["runs", "list"],
      ["runs", "list", "--state", "ready"],
      ["runs", "tail"],
      ["dead", "list"],
      ["runs", "show", String(runs.good)],
      ["runs", "show", String(runs.bad)],
      ["nodes"],
      ["groups", "list"],
      ["calendars", "list"],
      ["calendars", "show", "de"],
      ["operations", "list"],
      ["alarms"],
      ["keys", "list"],
      ["users", "list"],
      ["export"],
      ["export", "nightly"],
      ["simulate", "--from", "2030-12-24T00:00:00Z"],
    ];
    for (const args of asked) {
      expect([args, (await both(...args)).code]).toEqual([args, 0]);
    }
  });

  it("acts through a server, is attributed to the token's owner, and is refused in the same cases as on the store", async () => {
    expect((await byServer("tasks", "pause", "nightly", "--reason", "bank is closed")).stdout).toBe(
      "nightly is paused\n",
    );
    const { paused } = await jsonOf("tasks", "show", "nightly");
    expect(paused).toMatchObject({ by: expect.stringMatching(/^admin-.* by token test$/), why: "bank is closed" });
    expect((await byServer("tasks", "resume", "nightly")).stdout).toMatch(/^nightly is resumed; next 20.* 03:00:00 /);
    const edit = await byServer("tasks", "edit", "nightly", "--set", "timeout=2h", "--set", "schedule=0 4 * * *");
    expect([edit.code, edit.stdout]).toEqual([0, expect.stringMatching(/^nightly is at version 2\n/)]);
    expect(edit.stdout).toMatch(/^ {2}timeoutMs +1h +2h$/m);
    expect(await byServer("tasks", "edit", "nightly", "--set", "timeout=3h", "--expect-version", "1")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("TASK_STALE"),
    });
    expect((await jsonOf("tasks", "revert", "nightly", "timeout")).edited).toEqual(["schedule"]);
    for (const parts of [
      ['rate={"limit":9,"per":"1m"}', "after=order"],
      ["rate=none", "after=none"],
    ])
      expect(await byServer("tasks", "edit", "nobody", ...parts.flatMap((part) => ["--set", part]))).toMatchObject({
        code: 0,
      });
    const { run } = await jsonOf("tasks", "run", "nobody", "--payload", '{"n":3}');
    expect(await byServer("runs", "cancel", String(run), "--reason", "not now")).toMatchObject({
      code: 0,
      stdout: `run ${run} is cancelled\n`,
    });
    expect(await byServer("runs", "cancel", "999999")).toMatchObject({ code: 3 });
    expect(await byServer("runs", "rerun", String(run))).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^run \d+ runs again as \d+\n$/),
    });
    const dry = await byServer("runs", "rerun", "--task", "order", "--since", "1d", "--dry-run");
    expect([dry.code, dry.stdout]).toEqual([0, expect.stringMatching(/^1 run to run again/)]);
    expect(await jsonOf("dead", "redrive", "--task", "order", "--wait")).toMatchObject({ state: "done", done: 1 });
    expect(await byServer("operations", "show", "999")).toMatchObject({ code: 3 });
    expect((await byServer("groups", "limit", "elsewhere", "4")).stdout).toContain("4 runs at once");
    const made = await jsonOf("keys", "create", "reports", "--group", "elsewhere");
    expect(made.key).toMatch(/^ck_/);
    expect((await byServer("keys", "revoke", "reports")).code).toBe(0);
    expect(await jsonOf("users", "create", "ann", "--role", "operator")).toMatchObject({
      name: "ann",
      role: "operator",
    });
    expect((await jsonOf("users", "password", "ann")).password).toMatch(/-/);
  });

  it("fails with a distinct code if it needs the store, lacks permission, or the server is unreachable", async () => {
    await writeFile(join(folder, "tasks.yaml"), "tasks:\n  one: { schedule: { every: 5m } }\n");
    const failed = async (args: string[], environment = token(), at = server()) => {
      const { code, stderr } = await inProcess([...args, ...at, "--json"], environment);
      return [code, JSON.parse(stderr.trim().split("\n").at(-1) as string).code];
    };
    for (const args of [["doctor"], ["migrate"], ["server"]])
      expect([args, ...(await failed(args))]).toEqual([args, 4, "STORE_NEEDED"]);
    const apply = ["apply", join(folder, "tasks.yaml"), "--yes"];
    expect(await failed(apply, token("viewer"))).toEqual([4, "ACCESS_DENIED"]);
    expect(await inProcess(["diff", join(folder, "tasks.yaml"), ...server()], token("viewer"))).toMatchObject({
      code: 2,
    });
    expect(await failed([...apply, "--author", "ci"])).toEqual([2, "USAGE"]);
    expect(await failed(["alarms", "silence", "--for", "1h"])).toEqual([2, "USAGE"]);
    expect(await failed(["alarms", "acknowledge", "stuck"])).toEqual([3, "ALARM_UNKNOWN"]);
    expect(await failed(["secrets", "remove", "nothing"])).toEqual([3, "SECRET_UNKNOWN"]);
    expect(await failed(["tasks", "pause", "order"], token("viewer"))).toEqual([4, "ACCESS_DENIED"]);
    expect(await failed(["tasks", "list"], { ...token(), CARILLON_TOKEN: `ct_1_${"x".repeat(43)}` })).toEqual([
      4,
      "SIGN_IN_NEEDED",
    ]);
    expect(await failed(["tasks", "list"], { ...token(), CARILLON_TOKEN: "" })).toEqual([4, "SIGN_IN_NEEDED"]);
    expect(await failed(["tasks", "list"], token(), ["--server", "http://127.0.0.1:1"])).toEqual([
      4,
      "SERVER_UNREACHABLE",
    ]);
    for (const wrong of [
      ["--server", "carillon.example"],
      ["--server", "http://carillon.example"],
      [...server(), ...store()],
    ])
      expect([wrong, ...(await failed(["tasks", "list"], token(), wrong))]).toEqual([wrong, 2, "USAGE"]);
  });
});

const file = (name: string, text: string) => writeFile(join(folder, name), text);
const yaml = (timeout: string, more = "") => `bundle: billing
tasks:
  settle: { schedule: { cron: "0 2 * * *", zone: Asia/Shanghai }, timeout: ${timeout} }
  beat: { schedule: { every: 5m } }
${more}`;

describe("tasks as code, through a server", () => {
  const at = () => join(folder, "billing.yaml");
  it("plan, apply, drift and prune work as on the store, and a plan that is out of date is refused entirely", async () => {
    await file("billing.yaml", yaml("1h", "  old: {}\n"));
    expect(await both("diff", at())).toMatchObject({
      code: 2,
      stdout: expect.stringMatching(/^\+ settle {2,}at 02:00/m),
    });
    const first = await byServer("apply", at(), "--reason", "begin");
    expect([first.code, first.stdout]).toEqual([
      0,
      expect.stringMatching(/: 3 to create; plan [\da-f]{12}\n3 created$/m),
    ]);
    expect(await both("diff", at())).toMatchObject({ code: 0 });
    expect((await jsonOf("tasks", "show", "settle")).versions).toMatchObject([
      { version: 1, author: expect.stringMatching(/^admin-.* by token test$/), reason: "begin" },
    ]);

    await byServer("tasks", "edit", "beat", "--set", "priority=8", "--reason", "hurry");
    await file("billing.yaml", yaml("2h"));
    const diff = await both("diff", at(), "--prune");
    expect([diff.code, diff.stdout]).toEqual([
      2,
      expect.stringMatching(/edited by hand: priority 5 → 8; it stays so$/m),
    ]);
    const [, id = ""] = /plan ([\da-f]{12})/.exec(diff.stdout) ?? [];
    await byServer("tasks", "edit", "settle", "--set", "priority=1");
    const late = await byServer("apply", at(), "--prune", "--expect-plan", id);
    expect([late.code, late.stderr]).toEqual([1, expect.stringContaining("TASK_STALE")]);
    expect(await jsonOf("apply", at(), "--prune")).toMatchObject({
      applied: [
        { task: "settle", kind: "change", version: 3 },
        { task: "old", kind: "remove", version: 1 },
      ],
    });
    expect(await both("apply", at(), "--plan", "--overwrite-edits")).toMatchObject({ code: 2 });
    await file("thief.yaml", "bundle: thief\ntasks:\n  settle: {}\n  order: {}\n");
    expect(await both("apply", join(folder, "thief.yaml"))).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^bundle thief: 2 refused/m),
    });
  });

  it("report a task that could not be applied, and apply the others", async () => {
    await file(
      "some.yaml",
      "bundle: some\ntasks:\n  some-1: {}\n  some-2: { calendar: { name: nowhere }, schedule: '0 2 * * *' }\n",
    );
    const done = await byServer("apply", join(folder, "some.yaml"));
    expect([done.code, done.stdout]).toEqual([
      1,
      expect.stringMatching(/^! some-2: CALENDAR_UNKNOWN: .*\n.*hint: .*\n1 created, 1 not done$/m),
    ]);
  });

  it("import a changed crontab, and report tasks that no longer have a line", async () => {
    const imported = (...more: string[]) =>
      byServer("import", "crontab", join(folder, "nightly"), "--zone", "UTC", ...more);
    await file("nightly", "0 2 * * * /usr/bin/backup eu\n0 3 * * * /usr/bin/report\n");
    expect((await imported()).code).toBe(0);
    expect(await imported("--prefix", "other"), "of another machine").toMatchObject({ code: 0 });
    // With two backups in the file, the first one's task gets another name; the report is no longer in the file.
    await file("nightly", "0 2 * * * /usr/bin/backup eu\n0 4 * * * /usr/bin/backup us\n");
    const told = await imported();
    expect(told).toMatchObject({ code: 1, stdout: expect.stringMatching(/^2 new, 2 with problems$/m) });
    for (const name of ["nightly-backup", "nightly-report"])
      expect(told.stdout).toMatch(
        new RegExp(
          `nightly: TASK_DUPLICATE: ${name} is of an earlier .*\n  hint: .* carillon tasks pause ${name}\\.$`,
          "m",
        ),
      );
    expect(JSON.parse((await imported("--json")).stdout).problems).toMatchObject([{ line: null }, { line: null }]);
    await byServer("tasks", "pause", "nightly-backup", "nightly-report", "--reason", "of an earlier crontab");
    expect(await imported()).toMatchObject({ code: 0, stdout: expect.stringMatching(/^0 new, 2 unchanged, 0 with/m) });
  });

  it("import crontabs repeatedly, and keep manual edits", async () => {
    await file("crontab", "0 2 * * * /usr/bin/backup\n*/5 * * * * a | b\n");
    const imported = (...more: string[]) =>
      byServer("import", "crontab", join(folder, "crontab"), "--zone", "UTC", ...more);
    expect(await imported()).toMatchObject({ code: 1, stdout: expect.stringMatching(/^1 new, 1 with problems$/m) });
    await byServer("tasks", "edit", "crontab-backup", "--set", "timeout=1h");
    expect((await imported()).stdout).toMatch(/^0 new, 1 unchanged, 1 with problems$/m);
    await file("crontab", "0 3 * * * /usr/bin/backup\n");
    expect(await imported()).toMatchObject({ code: 0, stdout: expect.stringMatching(/^0 new, 1 changed, 0 with/m) });
    expect(await jsonOf("tasks", "show", "crontab-backup")).toMatchObject({
      edited: ["timeoutMs"],
      versions: [{ reason: "imported from crontab:1" }, {}, {}],
    });
  });
});

describe("secrets, users and alarms, through a server", () => {
  it("a secret is for any task or for named tasks, not both", async () => {
    const both = await byServer("secrets", "set", "bank", "--task", "order", "--any-task");
    expect(both).toMatchObject({ code: 2, stderr: expect.stringContaining("--any-task and --task were given") });
  });

  it("secrets are set from standard input, never shown, rewrapped and removed, as on the store", async () => {
    const canary = "canary-51d of the bank";
    const set = await typed(
      canary,
      ["secrets", "set", "bank", "--task", "settle", "--reason", "new", ...server()],
      token(),
    );
    expect([set.code, set.stdout]).toEqual([0, "bank is at version 1\n"]);
    const listed = await both("secrets", "list");
    expect([listed.stdout, listed.stdout.includes("canary")]).toEqual([expect.stringMatching(/bank/), false]);
    expect((await byServer("secrets", "rewrap")).stdout).toMatch(/^0 values are wrapped anew, all by the key \w+/);
    expect((await byServer("secrets", "remove", "bank", "--reason", "gone")).code).toBe(0);
    expect(await jsonOf("secrets", "list")).toEqual([]);
    const [gone] = (await stage.client().listAudit({ about: "secret" })).items;
    expect(gone).toMatchObject({ act: "remove", who: expect.stringContaining("by token"), why: "gone" });
  });

  it("removing a user removes all of its tokens, keeps the reason and frees the name", async () => {
    await jsonOf("users", "create", "cat", "--role", "viewer");
    const removed = await byServer("users", "remove", "cat", "--reason", "left the house");
    expect([removed.code, removed.stdout]).toEqual([0, expect.stringMatching(/^cat is removed/)]);
    expect((await byServer("users", "remove", "cat")).stderr).toContain("USER_UNKNOWN");
    const [entry] = (await stage.client().listAudit({ about: "user", named: "cat" })).items;
    expect(entry).toMatchObject({ act: "remove", why: "left the house" });
    expect(await jsonOf("users", "create", "cat", "--role", "viewer")).toMatchObject({ name: "cat" });
  });

  it("alarms are acknowledged and silenced, both states are shown, and a silence can be ended", async () => {
    const { alarms, clock } = stage.store;
    const t = Math.floor((await clock()).ms);
    await alarms.report([{ rule: "late", subject: "order", count: 1, text: "order was late", runId: null }], t);
    const thresholds = { lateMs: 1e6, overdueMs: 1e6, unfiredMs: 1e6, stuckMs: 1e6, leaderlessMs: 1e6, summaryMs: 1e6 };
    await alarms.look(["late"], thresholds, { late: ["nobody"] }, t);
    expect((await byServer("alarms", "acknowledge", "late", "--task", "order", "--reason", "known")).stdout).toBe(
      "1 open alarm is known: runs started late\n",
    );
    const made = await jsonOf("alarms", "silence", "late", "--task", "order", "--for", "2h", "--reason", "migration");
    expect(made).toMatchObject({ rule: "late", task: "order", reason: "migration" });
    expect((await inProcess(["alarms", "silence", "--task", "mail", "--for", "1h", ...store()])).code).toBe(0);
    const slip = ["alarms", "silence", "--task", "ordr", "--for", "1h"];
    for (const { code, stderr } of [await byServer(...slip), await inProcess([...slip, ...store()])]) {
      expect([code, stderr]).toEqual([3, expect.stringContaining('there is no task "ordr"; did you mean "order"?')]);
      expect(stderr.split("did you mean").length).toBe(2);
    }
    await both("alarms");
    await both("alarms", "silences");
    expect(await jsonOf("alarms")).toMatchObject({
      open: [{ acknowledged: { why: "known" }, silencedUntil: made.until }],
    });
    expect((await byServer("alarms")).stdout).toMatch(/known to admin-\w+ by token test \(known\); order was late/);
    expect((await byServer("alarms", "silences")).stdout).toMatch(
      /^ +\d+ +runs started late +order +in .* migration$/m,
    );
    expect((await byServer("alarms", "unsilence", String(made.silence))).code).toBe(0);
    expect(await jsonOf("alarms", "silences")).toMatchObject([{ rule: null, task: "mail" }]);
    const { items } = await stage.client().listAudit({ about: "alarm" });
    expect(items.map(({ why }) => why)).toEqual(expect.arrayContaining(["known", "migration"]));
  });
});

describe("carillon login", () => {
  it("reads a token from standard input, stores it readable by the user only, and deletes it on logout", async () => {
    const environment = { XDG_CONFIG_HOME: folder };
    const profile = join(folder, "carillon", "profiles.json");
    const login = (text: string, ...args: string[]) => typed(text, ["login", stage.urlOf(), ...args], environment);
    const given = await login(stage.tokens.viewer, "--with-token", "--profile", "look");
    expect([given.code, given.stdout]).toEqual([
      0,
      expect.stringMatching(/^signed in at http.* as viewer-\w+, profile look/),
    ]);
    expect((await stat(profile)).mode & 0o777).toBe(0o600);
    expect(await inProcess(["tasks", "list", "--profile", "look"], environment)).toMatchObject({ code: 0 });

    const password = "seven bells at noon";
    await stage.client().createUser({ name: "bea", password, role: "operator" });
    expect((await login("wrong password", "--user", "bea")).stderr).toContain("SIGN_IN_REFUSED");
    const made = await login(password, "--user", "bea", "--profile", "act", "--expires", "1h");
    expect(made).toMatchObject({ code: 0, stdout: expect.stringContaining("as bea, profile act; it holds until") });
    expect(await readFile(profile, "utf8")).not.toContain(password);
    expect((await inProcess(["profiles"], environment)).stdout).toMatch(/^\* +act +http.* bea +ends in/m);
    const { profiles } = JSON.parse(await readFile(profile, "utf8"));
    const environmentOf = { ...environment, CARILLON_PROFILE: "act" };
    expect(await inProcess(["tasks", "pause", "mail"], environmentOf)).toMatchObject({ code: 0 });
    // A new sign-in revokes the profile's former token.
    await login(password, "--user", "bea", "--profile", "act");
    const act = { ...environment, CARILLON_SERVER: stage.urlOf(), CARILLON_TOKEN: profiles.act.token };
    expect((await inProcess(["tasks", "list"], act)).stderr).toContain("SIGN_IN_NEEDED");
    expect((await inProcess(["profiles", "use", "look"], environment)).code).toBe(0);
    expect((await inProcess(["logout", "--profile", "act"], environment)).stdout).toContain("its token has ended");
    expect((await inProcess(["logout"], environment)).stdout).toMatch(/^signed out of .* profile look\n/);
    expect(await inProcess(["logout"], environment)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("PROFILE_UNKNOWN"),
    });
    await writeFile(profile, "{}", { mode: 0o644 });
    expect((await inProcess(["profiles"], environment)).stderr).toContain("CONFIG_INVALID");
  });
});

describe("carillon login of a user with a second factor", () => {
  it("prompts for the code at a terminal; without a terminal it takes --code or reports that the code is missing", async () => {
    const password = "seven bells at noon";
    await stage.client().createUser({ name: "cleo", password, role: "viewer" });
    const user = await userCalled(stage.store.access, "cleo");
    const secret = makeFactorSecret();
    const codes = makeRecoveryCodes();
    const change = { author: "cleo", reason: "", nowMs: Date.now() };
    await stage.store.secondFactors.begin(user.userId, { plain: secret }, change.nowMs);
    await stage.store.secondFactors.confirm(user, 1, codes.map(hashOfRecoveryCode), null, change);
    const args = ["login", stage.urlOf(), "--user", "cleo", "--profile", "cleo"];
    const environment = { XDG_CONFIG_HOME: join(folder, "second-factor") };
    expect((await typed(password, args, environment)).stderr).toContain("SECOND_FACTOR_NEEDED");
    const wrong = await typed(password, [...args, "--code", wrongCodeOf(secret)], environment);
    expect([wrong.code, wrong.stderr]).toEqual([4, expect.stringContaining("CODE_REFUSED")]);
    const given = await typed(password, [...args, "--code", codes[0] ?? ""], environment);
    expect([given.code, given.stdout]).toEqual([0, expect.stringContaining("as cleo, profile cleo")]);
    const asked = await answered([password, codeOf(secret)], args, environment);
    expect(asked.stdout).toContain("as cleo, profile cleo");
    expect(asked.stderr).toContain("code of the second factor: ");
  });
});

describe("following run ends", () => {
  it("continues after the server stops and another one starts at its address, and reports each end once", async () => {
    const first = await stage.serve();
    const address = first.listening as string;
    const cluster = await clusterByServer({ url: `http://${address}`, token: stage.tokens.viewer });
    const over = new AbortController();
    const told: number[] = [];
    const heard: string[] = [];
    const waiting: (() => void)[] = [];
    const wake = () => {
      for (const resume of waiting.splice(0)) resume();
    };
    const until = async (holds: () => boolean) => {
      while (!holds()) await new Promise<void>((resolve) => waiting.push(resolve));
    };
    const listener = {
      ended({ runId }: RunRecord) {
        told.push(runId);
        wake();
      },
      away() {
        heard.push("away");
        wake();
      },
      back() {
        heard.push("back");
        wake();
      },
      left: () => undefined,
    };
    const known = await cluster.runs.list({ task: "order", limit: 10, states: ["succeeded", "failed"] });
    const following = cluster.runs.follow("order", known.reverse(), listener, over.signal);
    const one = await ended("order", { outcome: "succeeded", result: 1 });
    await until(() => told.includes(one));
    await first.stop();
    stage.servers.splice(stage.servers.indexOf(first), 1);
    await until(() => heard.includes("away"));
    const two = await ended("order", { outcome: "succeeded", result: 2 });
    await stage.serve({ listen: address });
    await until(() => told.includes(two) && heard.includes("back"));
    over.abort();
    await following;
    await cluster.close();
    expect(told).toEqual([one, two]);
  });
});
