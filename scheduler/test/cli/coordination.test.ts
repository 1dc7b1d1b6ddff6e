/**
 * Tests coordination options of the command line. Takes over a minute: real servers and workers run side by side, each takes seconds to
 * start, and the sessions of killed processes have to expire.
 */
import { connect, digestId, openAcl, readAcl } from "@carillon/zookeeper";
import { Ensemble } from "@carillon/zookeeper/testing";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ZooKeeperProxy } from "../../../zookeeper/test/support/proxy.ts";
import { inProcess } from "../support/in-process.ts";
import { until } from "../support/store-stage.ts";
import { ask as askProcess, file, here, objects, schema, start, url } from "./process.ts";

/** Runs a command inside the test's process. Used for commands that only query the cluster, or that are refused. */
const ask = (...args: string[]) => inProcess([...args, ...here()]);
const json = async (...args: string[]) => JSON.parse((await ask(...args, "--json")).stdout);
/** Waits until `carillon nodes` shows `node` as the leader. */
const leads = (node: string) => until(`${node} to lead`, async () => (await json("nodes")).leader?.node === node);

let ensemble: Ensemble;
let paths = 0;
beforeAll(async () => {
  ensemble = await Ensemble.start({ servers: 1, tickTime: 200 });
});
afterAll(() => ensemble.stop());

const zookeeper = (path = `/cli-${paths++}/carillon`, credentials = "") =>
  `zookeeper://${credentials}${ensemble.server.address}${path}`;
const checks = async (...args: string[]) => {
  const { code, stdout } = await ask("doctor", "--json", ...args);
  const found: { what: string; verdict: string; found: string }[] = JSON.parse(stdout).checks;
  return { code, of: (what: string) => found.find((check) => check.what === what) };
};
const serverReady = async (...args: string[]) => {
  const server = start(["server", ...here(), ...args]);
  await server.says(/"server is ready"/);
  return server;
};

describe("coordination on the command line", () => {
  it("comes from the option or the environment, is shown without its password, and is in nodes and doctor", async () => {
    const path = `/cli-${paths++}/carillon`;
    const shown = `ZooKeeper at ${ensemble.server.address}${path}`;
    const planner = await serverReady(
      "--name",
      "planner",
      "--coordination",
      zookeeper(path, "me:secret@"),
      "--label",
      "zone=eu-1",
    );
    expect(objects(planner.stdout)).toContainEqual(expect.objectContaining({ node: "planner", coordination: shown }));
    expect(planner.stdout + planner.stderr).not.toContain("secret");
    await leads("planner");
    const env = { CARILLON_COORDINATION: zookeeper(path, "me:secret@") };
    const dev = start(["dev", "tasks.ts", ...here(), "--name", "ringer", "--concurrency", "7"], { env });
    await dev.says(/node ringer follows/);
    expect(dev.stdout).toContain(`, ${shown}   node ringer`);
    await until("both to rely on the service", async () =>
      (await json("nodes")).members.every(({ reliesOn }: { reliesOn: string }) => reliesOn === "service"),
    );

    const { members, leader, coordination, coordinationPlace } = await json("nodes");
    expect([coordination, coordinationPlace]).toEqual([expect.stringMatching(/^[\da-f-]{36}$/), shown]);
    expect(members).toMatchObject([
      { node: "planner", leads: true, labels: { zone: "eu-1" }, capacity: 0, groups: [] },
      { node: "ringer", leads: false, labels: {}, capacity: 7, groups: ["default"], silent: false },
    ]);
    expect(leader).toEqual({ node: "planner", since: expect.stringMatching(/^\d{4}-.*Z$/) });
    const table = (await ask("nodes")).stdout;
    expect(table).toMatch(/^planner leads, term 1, since \d{4}-\d\d-\d\d .*; coordination by ZooKeeper at .*$/m);
    expect(table).toContain(`; coordination by ${shown}\n`);
    expect(table).toMatch(/^planner +leads +scheduler +zone=eu-1 .* service +.* live, seen /m);
    expect(table).toMatch(/^ringer +scheduler, worker +default +7 .* service +.* live, seen /m);

    expect((await checks()).of("coordination")).toMatchObject({
      verdict: "good",
      found: `by ${shown}`,
    });
    const same = ["--coordination", zookeeper(path, "me:secret@")];
    expect((await checks(...same)).of("coordination")).toMatchObject({
      found: `by ${shown}`,
    });
    expect((await checks("--coordination", zookeeper(path))).of("coordination")?.found).toContain(
      "COORDINATION_REFUSED",
    );
    const elsewhere = await checks("--coordination", zookeeper());
    expect(elsewhere.code).toBe(5);
    expect(elsewhere.of("coordination")).toMatchObject({
      verdict: "problem",
      found: expect.stringContaining("COORDINATION_DIFFERS"),
    });

    await planner.end("SIGTERM");
    await leads("ringer");
    const [second, first] = (await json("nodes")).terms;
    expect(second).toMatchObject({ term: 2, node: "ringer", ended: null });
    expect(first).toMatchObject({ term: 1, node: "planner", endedWhy: "stopped" });
    expect((await ask("nodes")).stdout).toMatch(/^ +1 +planner .* stopped$/m);
  });

  it("is retried while the service is away, and that is logged once", async () => {
    const proxy = await ZooKeeperProxy.before(ensemble.server.address);
    proxy.refuse();
    const through = `zookeeper://${proxy.address}/cli-${paths++}/carillon`;
    const failing = await askProcess("server", "--coordination", through, "--fail-fast", "--json");
    expect(failing.code).toBe(4);
    expect(objects(failing.stderr)).toMatchObject([
      {
        code: "COORDINATION_UNREACHABLE",
        message: expect.stringContaining(through),
        hint: expect.stringMatching(/\w/),
      },
    ]);
    const server = start(["server", ...here(), "--coordination", through]);
    await server.says(/the coordination service is away; going on trying/);
    proxy.accept();
    await server.says(/"server is ready"/);
    expect(server.stdout.match(/the coordination service is away/g)).toHaveLength(1);
    expect((await server.end("SIGTERM")).code).toBe(0);
    await proxy[Symbol.asyncDispose]();
  });

  it("is refused if invalid, with a code, a hint and no password", async () => {
    const root = await connect(ensemble.connectString());
    const mine = `/cli-${paths++}`;
    await root.create(mine, "", {
      acl: openAcl.map((acl) => ({ ...acl, scheme: "digest", id: digestId("owner", "right") })),
    });
    await root.create("/cli-readable", "", { acl: readAcl });
    await root.create("/cli-foreign");
    await root.create("/cli-foreign/service", "not ours");
    await root.create("/cli-theirs");
    await root.create("/cli-theirs/members");
    await root.create("/cli-theirs/service", JSON.stringify({ cluster: "another", service: "x" }));
    await root.close();
    for (const [coordination, code, exit] of [
      ["etcd://me:secret@host/a", "OPTION_INVALID", 2],
      ["zookeeper://", "OPTION_INVALID", 2],
      ["zookeeper://me:secret%@127.0.0.1:1/a", "OPTION_INVALID", 2],
      [zookeeper(mine, "owner:secret@"), "COORDINATION_REFUSED", 4],
      [zookeeper("/cli-readable"), "COORDINATION_REFUSED", 4],
      [zookeeper("/cli-foreign"), "COORDINATION_FOREIGN", 4],
      [zookeeper("/cli-theirs"), "COORDINATION_FOREIGN", 4],
    ] as const) {
      const refused = await ask("server", "--json", "--coordination", coordination);
      expect([coordination, refused.code]).toEqual([coordination, exit]);
      expect(objects(refused.stderr)).toMatchObject([{ code, hint: expect.stringMatching(/\w/) }]);
      expect(refused.stderr + refused.stdout).not.toContain("secret");
    }
    const server = await serverReady("--coordination", zookeeper(mine, "owner:right@"));
    for (const [path, code] of [
      ["/cli-theirs", "COORDINATION_FOREIGN"],
      ["/cli-foreign", "COORDINATION_FOREIGN"],
    ] as const) {
      expect((await checks("--coordination", zookeeper(path))).of("coordination")?.found).toContain(code);
    }
    const alone = await askProcess("server", "--json");
    expect(alone.code).toBe(4);
    expect(objects(alone.stderr)).toMatchObject([
      {
        code: "COORDINATION_DIFFERS",
        message: expect.stringMatching(/ coordinates by ZooKeeper at [^@]+, and this one would by the store alone$/),
      },
    ]);
    expect((await server.end("SIGTERM")).code).toBe(0);
  });
});

describe("settings that must agree", () => {
  const keeping = (retention: string) => `
import { carillon } from "carillon";
export const tower = carillon({ retention: "${retention}" });
`;

  it("a retention shorter than a live node's is refused, and doctor names both", async () => {
    await file("long.ts", keeping("60d"));
    await file("short.ts", keeping("7d"));
    const by = ["--coordination", zookeeper()];
    const first = start(["dev", "short.ts", ...here(), "--name", "short", ...by]);
    await first.says(/node short (?:leads|follows)/); // With a coordination service, a node follows briefly before it leads.
    await leads("short");
    const second = start(["dev", "long.ts", ...here(), "--name", "long", "--json", ...by]);
    await second.says(/retention is 7d on short and 60d on long/);
    await second.says(/"event":"ready"/);
    expect(objects(second.stdout).find(({ event }) => event === "ready")).toMatchObject({
      store: expect.stringMatching(/^PostgreSQL at [^,]+$/),
      coordination: expect.stringMatching(/^ZooKeeper at [^,]+$/),
    });
    const settings = await checks();
    expect(settings.of("settings")).toMatchObject({
      verdict: "problem",
      found: "SETTINGS_DIFFER: retention is 7d on short and 60d on long",
    });
    await first.end("SIGTERM");
    const refused = await askProcess("dev", "short.ts", "--name", "short", ...by);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(
      /^carillon: SETTINGS_DIFFER: retention is 60d on long and 7d on short \(live since \d{4}-.*Z: pid \d+ on .+\)\n {2}hint: /,
    );
    expect((await json("nodes")).members).toMatchObject([{ node: "long", settings: { retentionMs: 60 * 86_400_000 } }]);
  });

  it("doctor reports a name that two processes use", async () => {
    await serverReady("--name", "planner");
    expect((await checks()).of("names")).toMatchObject({ verdict: "good" });
    const client = new pg.Client(url);
    await client.connect();
    for (const pid of [11, 12, 11]) {
      await client.query(
        `insert into ${schema}.session (node, role, host, pid, version, timeout_ms, started_ms, seen_ms, ended_ms, ended_why)
         select 'twin', 'node', 'vm', $1, '1', 6000, started_ms, started_ms, started_ms, 'silent' from ${schema}.session
         where node = 'planner'`,
        [pid],
      );
    }
    await client.end();
    expect((await checks()).of("names")).toMatchObject({
      verdict: "problem",
      found: expect.stringContaining("twin: pid 11 on vm and pid 12 on vm"),
    });
  });
});

describe("a process's address", () => {
  const address = "10.0.0.7:7373";
  const quick = () =>
    file(
      "quick.ts",
      'import { carillon } from "carillon";\nexport const tower = carillon({ sessionTimeout: "5s" });\n',
    );
  const dev = (name: string, ...args: string[]) => start(["dev", "quick.ts", ...here(), "--name", name, ...args]);

  it("belongs to one live process; another is refused with the holder's name, until a killed holder's session ends", async () => {
    await quick();
    const first = start(["dev", "quick.ts", ...here(), "--name", "a"], { env: { CARILLON_ADDRESS: address } });
    await first.says(/node a leads/);
    expect((await ask("nodes")).stdout).toMatch(/^a +leads +scheduler, worker +default +100 +10\.0\.0\.7:7373 /m);
    expect((await checks()).of("addresses")).toMatchObject({ verdict: "good", found: "each is one process's" });
    const refused = await askProcess("dev", "quick.ts", "--name", "b", "--address", address);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(
      /NODE_ADDRESS_TAKEN: a on .+ is reached at 10\.0\.0\.7:7373, and so would b on .+ be \(live since \d{4}-.*Z: pid \d+ on .+\)\n {2}hint: /,
    );
    await first.end("SIGKILL");
    await dev("b", "--address", address).says(/node b (?:leads|follows)/);
    const { members } = await json("nodes");
    expect(members).toMatchObject([{ node: "b", settings: { address } }]);
    const wrong = await ask("server", "--address", "0.0.0.0:7373");
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("OPTION_INVALID: address cannot be")]);
  });

  it("doctor reports two processes at one address, and localhost beside another machine", async () => {
    await quick();
    await dev("a", "--address", "localhost:7373").says(/node a leads/);
    const client = new pg.Client(url);
    await client.connect();
    const insert = `insert into ${schema}.session (node, role, host, pid, version, timeout_ms, started_ms, seen_ms, ended_ms, ended_why, settings)
       select $1, 'worker', 'elsewhere', $2, '1', 600000, started_ms, started_ms, case when $3 then started_ms end, 'silent', settings || $4::jsonb from ${schema}.session
       where node = 'a'`;
    for (const pid of [11, 12, 11]) await client.query(insert, [`n${pid}`, pid, true, { address }]);
    await client.query(insert, ["far", 13, false, { address: null }]);
    await client.end();
    const found = await checks();
    expect(found.code).toBe(5);
    expect(found.of("addresses")).toMatchObject({
      verdict: "problem",
      found: expect.stringContaining(`${address}: n11 (pid 11 on elsewhere) and n12 (pid 12 on elsewhere)`),
    });
    expect(found.of("settings")).toMatchObject({
      verdict: "problem",
      found: expect.stringMatching(
        /^SETTINGS_DIFFER: a on .+ says that it is reached at localhost:7373, which leads far on elsewhere/,
      ),
    });
  });
});

describe("an observer", () => {
  it("never leads, and unplanned slots still fire; doctor reports the missing leader", async () => {
    const eye = start(["dev", "tasks.ts", ...here(), "--name", "eye", "--observer"]);
    await eye.says(/beat +run \d+ +✓[\s\S]*beat +run \d+ +✓/);
    const { stdout } = await ask("nodes");
    expect(stdout).toMatch(/^nobody leads; coordination by the store alone$/m);
    expect(stdout).toMatch(/^eye +observer, worker +default /m);
    expect((await checks()).of("leader")).toMatchObject({
      verdict: "problem",
      found: "nobody leads: all that schedule are observers",
    });
    const planner = await serverReady("--name", "planner");
    await leads("planner");
    expect((await json("nodes")).members).toMatchObject([
      { node: "eye", leads: false, settings: { observer: true } },
      { node: "planner", leads: true, settings: { observer: false } },
    ]);
    await planner.end("SIGKILL");
    // The only other node is an observer, so no node leads after the planner's term has ended.
    await until("the planner to be gone", async () => (await json("nodes")).members.length === 1);
    expect(await json("nodes")).toMatchObject({
      leader: null,
      terms: [
        {
          term: 1,
          node: "planner",
          ended: expect.any(String),
          endedWhy: expect.stringMatching(/^silent for .* by eye$/),
        },
      ],
    });
  });
});

describe("a killed worker that returns under its name", () => {
  it("gets a new session, and its old claims are treated as a dead worker's", async () => {
    await file(
      "killed.ts",
      `
import { carillon } from "carillon";
export const tower = carillon({ sessionTimeout: "5s" });
const never = () => new Promise(() => setInterval(() => undefined, 1_000));
tower.task("again", { onWorkerLost: "retry" }, (run) => (run.attempt > 1 ? run.fence : never()));
tower.task("once", { onWorkerLost: "fail" }, never);
`,
    );
    await serverReady();
    const worker = () => start(["worker", "killed.ts", ...here(), "--name", "runner", "--concurrency", "2"]);
    const sessionOf = async () =>
      (await json("nodes")).members.find(({ node }: { node: string }) => node === "runner")?.sessionId;
    const first = worker();
    await first.says(/"worker is ready"/);
    const [again, once] = [(await json("tasks", "run", "again")).run, (await json("tasks", "run", "once")).run];
    const shown = (run: number) => json("runs", "show", String(run));
    await until(
      "both runs to start",
      async () => (await shown(again)).started !== null && (await shown(once)).started !== null,
    );
    const session = await sessionOf();
    await first.end("SIGKILL");
    await worker().says(/"worker is ready"/);
    expect(await sessionOf()).toBeGreaterThan(session);
    await until(
      "both runs to end",
      async () => (await shown(again)).state === "succeeded" && (await shown(once)).state === "failed",
    );
    expect(await shown(again)).toMatchObject({ attempt: 2, node: "runner" });
    expect((await shown(once)).error).toMatchObject({ code: "WORKER_LOST" });
  });
});
