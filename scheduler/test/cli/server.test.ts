import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { clusterByServer } from "../../src/cli/cluster/by-server.ts";
import { cron } from "../../src/schedule.ts";
import type { RunRecord } from "../../src/store.ts";
import { ApiStage } from "../support/api-stage.ts";
import { inProcess } from "../support/in-process.ts";
import { said } from "../support/remote-stage.ts";
import { postgres } from "../support/servers.ts";

/** Without what is another at each look. */
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
  ...{ CARILLON_TOKEN: stage.tokens[role], XDG_CONFIG_HOME: folder },
});
const server = () => ["--server", stage.urlOf()];
const byServer = (...args: string[]) => inProcess([...args, ...server()], token());
const jsonOf = async (...args: string[]) => JSON.parse((await byServer(...args, "--json")).stdout);

async function ended(task: string, verdict: object): Promise<number> {
  const session = await stage.join(key, { tasks: [task] });
  const run = await stage.claimed(key, session, task, { n: 1 });
  const logs = [{ runId: run.runId, fence: run.fence, agoMs: 1, message: "ding" }];
  await stage.poll(key, { session, logs, verdicts: [said(run, { startedAgoMs: 5, ...verdict })], leave: true });
  return run.runId;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "carillon-server-"));
  await stage.open();
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

describe("a command", () => {
  it("gives the same by a server as by the store, for programs and for people", async () => {
    const asked = [
      ...[
        ["tasks", "list"],
        ["tasks", "show", "nightly"],
        ["tasks", "show", "order"],
        ["tasks", "next", "nightly"],
      ],
      ...[
        ["runs", "list"],
        ["runs", "list", "--state", "ready"],
        ["runs", "tail"],
        ["dead", "list"],
      ],
      ...[["runs", "show", String(runs.good)], ["runs", "show", String(runs.bad)], ["nodes"], ["groups", "list"]],
      ...[["calendars", "list"], ["calendars", "show", "de"], ["operations", "list"], ["alarms"], ["keys", "list"]],
      ...[["users", "list"], ["export"], ["export", "nightly"], ["simulate", "--from", "2030-12-24T00:00:00Z"]],
    ];
    for (const args of asked) {
      for (const form of [["--json"], []]) {
        const here = await inProcess([...args, ...form, ...store()]);
        const there = await byServer(...args, ...form);
        const plain = ({ code, stdout }: typeof here) => ({
          code,
          said: form.length > 0 ? objects(stdout) : withoutTimes(stdout),
        });
        expect({ args, ...plain(there) }).toEqual({ args, ...plain(here) });
        expect(there.code).toBe(0);
      }
    }
  });

  it("acts by a server, put down to whoever the token is, and refuses as the store would", async () => {
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
      ...{ code: 1, stderr: expect.stringContaining("TASK_STALE") },
    });
    expect((await jsonOf("tasks", "revert", "nightly", "timeout")).edited).toEqual(["schedule"]);
    const { run } = await jsonOf("tasks", "run", "nobody", "--payload", '{"n":3}');
    expect(await byServer("runs", "cancel", String(run), "--reason", "not now")).toMatchObject({
      ...{ code: 0, stdout: `run ${run} is cancelled\n` },
    });
    expect(await byServer("runs", "cancel", "999999")).toMatchObject({ code: 3 });
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

  it("says by a code what only the store can do, who may not, and that nobody is there", async () => {
    await writeFile(join(folder, "tasks.yaml"), "tasks:\n  one: { schedule: { every: 5m } }\n");
    const failed = async (args: string[], environment = token(), at = server()) => {
      const { code, stderr } = await inProcess([...args, ...at, "--json"], environment);
      return [code, JSON.parse(stderr.trim().split("\n").at(-1) as string).code];
    };
    for (const args of [
      ["apply", join(folder, "tasks.yaml"), "--yes"],
      ["users", "remove", "ann"],
      ["doctor"],
      ["server"],
    ])
      expect([args, ...(await failed(args))]).toEqual([args, 4, "STORE_NEEDED"]);
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

describe("carillon login", () => {
  it("takes a token from standard input, keeps it for its user alone, and forgets it", async () => {
    const environment = { XDG_CONFIG_HOME: folder };
    const profile = join(folder, "carillon", "profiles.json");
    const { stdin } = process;
    const typed = async (text: string, ...args: string[]) => {
      const { PassThrough } = await import("node:stream");
      const pipe = new PassThrough();
      pipe.end(`${text}\n`);
      Object.defineProperty(process, "stdin", { configurable: true, value: pipe });
      try {
        return await inProcess(["login", stage.urlOf(), ...args], environment);
      } finally {
        Object.defineProperty(process, "stdin", { configurable: true, value: stdin });
      }
    };
    const given = await typed(stage.tokens.viewer, "--with-token", "--profile", "look");
    expect([given.code, given.stdout]).toEqual([
      0,
      expect.stringMatching(/^signed in at http.* as viewer-\w+, profile look/),
    ]);
    expect((await stat(profile)).mode & 0o777).toBe(0o600);
    expect(await inProcess(["tasks", "list", "--profile", "look"], environment)).toMatchObject({ code: 0 });

    const password = "seven bells at noon";
    await stage.client().createUser({ name: "bea", password, role: "operator" });
    expect((await typed("wrong password", "--user", "bea")).stderr).toContain("SIGN_IN_REFUSED");
    const made = await typed(password, "--user", "bea", "--profile", "act", "--expires", "1h");
    expect(made).toMatchObject({ code: 0, stdout: expect.stringContaining("as bea, profile act; it holds until") });
    expect(await readFile(profile, "utf8")).not.toContain(password);
    expect((await inProcess(["profiles"], environment)).stdout).toMatch(/^\* +act +http.* bea +ends in/m);
    const { profiles } = JSON.parse(await readFile(profile, "utf8"));
    const environmentOf = { ...environment, CARILLON_PROFILE: "act" };
    expect(await inProcess(["tasks", "pause", "mail"], environmentOf)).toMatchObject({ code: 0 });
    // Signing in anew ends the token that the profile had.
    await typed(password, "--user", "bea", "--profile", "act");
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

describe("following ends", () => {
  it("goes on where a server stopped and another came up at its address, and tells each end once", async () => {
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
