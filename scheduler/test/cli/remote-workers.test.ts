/**
 * Takes over a minute: servers and workers are processes, and the tests wait until the session of a killed worker ends, and for three
 * heartbeats of each example's worker after its server was killed.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { lookingOptions } from "../../src/cli/store-choice.ts";
import { Carillon } from "../../src/library/carillon.ts";
import { defineTask, type TaskOptions } from "../../src/task/task.ts";
import { ask, type Cli, file, folder, here, json, objects, schema, start, until, url } from "./process.ts";

const examples = fileURLToPath(new URL("../../../examples", import.meta.url));

/** The handlers append a line to a file at each start and end of a run, synchronously, so that a kill loses no line. */
const handlers = `
import { appendFileSync } from "node:fs";
import { worker } from "carillon/worker";
const say = (text: string) => appendFileSync(process.env.SEEN as string, text + "\\n");
export const mine = worker()
  .task("ding", async (run) => {
    say("start " + run.id + " " + run.attempt);
    await new Promise((resolve) => setTimeout(resolve, 30));
    say("end " + run.id + " " + run.attempt);
  })
  .task("long", async (run) => {
    say("start " + run.id + " " + run.attempt);
    if (run.attempt === 1) await new Promise(() => setInterval(() => undefined, 1_000));
    return "second try";
  });
`;

async function serve(): Promise<{ server: Cli; at: string }> {
  const server = start(["server", ...here(), "--listen", "127.0.0.1:0", "--json"]);
  const [, address] = await server.says(/"listening":"([^"]+)"/);
  return { server, at: `http://${address}` };
}

const makeKey = async () => (await json("keys", "create", "one")).key as string;

/**
 * Calls `work` with an instance beside the processes under test, through which `work` defines tasks, enqueues runs and reads the
 * store.
 */
async function withTower<T>(work: (tower: Carillon) => Promise<T>): Promise<T> {
  const tower = new Carillon({ ...lookingOptions({ store: url, schema, color: false }) });
  try {
    return await work(tower);
  } finally {
    await tower.stop();
  }
}
const define = (tower: Carillon, name: string, options: TaskOptions = {}) => tower.save(defineTask(name, options));
const runOf = async (tower: Carillon, runId: number) => (await tower.open()).store.runs.find(runId);
const ended = (tower: Carillon, runId: number) => until(async () => (await runOf(tower, runId)).endedMs !== null);

describe("carillon worker --server", () => {
  test("survives kill -9 of its server: every run starts once, and a stop leaves no claims", async () => {
    const [first, second] = await Promise.all([serve(), serve()]);
    const key = await makeKey();
    const seenFile = `${folder}/seen-${schema}`;
    const path = await file("handlers.ts", handlers);
    const where = { env: { CARILLON_WORKER_KEY: key, SEEN: seenFile } };
    await withTower(async (tower) => {
      await define(tower, "ding");
      const worker = start(["worker", path, "--server", `${first.at},${second.at}`, "--json"], where);
      await worker.says(/worker is ready/);
      const runIds: number[] = [];
      for (let i = 0; i < 30; i++) {
        for (let n = 0; n < 5; n++) runIds.push((await tower.enqueue("ding")).runId);
        if (i === 15) await first.server.end("SIGKILL");
      }
      for (const runId of runIds) await ended(tower, runId);
      expect((await worker.end("SIGTERM")).code).toBe(0);
      const { readFileSync } = await import("node:fs");
      const lines = readFileSync(seenFile, "utf8").trim().split("\n");
      for (const kind of ["start", "end"]) {
        const some = lines.filter((line) => line.startsWith(kind));
        expect(some.toSorted()).toEqual(runIds.map((runId) => `${kind} ${runId} 1`).toSorted());
      }
      const { members } = await (await tower.open()).store.sessions.members();
      expect(members.filter(({ role }) => role === "worker")).toEqual([]);
    });
  });

  test("killed with -9: another worker runs its runs again, as the task's options say", async () => {
    const { at } = await serve();
    const key = await makeKey();
    const path = await file("handlers.ts", handlers);
    const where = { env: { CARILLON_WORKER_KEY: key, SEEN: `${folder}/seen-${schema}` } };
    await withTower(async (tower) => {
      await define(tower, "long", { onWorkerLost: "retry" });
      const doomed = start(["worker", path, "--server", at, "--json", "--name", "doomed"], where);
      await doomed.says(/worker is ready/);
      const { runId } = await tower.enqueue("long");
      await until(async () => (await runOf(tower, runId)).startedMs !== null);
      await doomed.end("SIGKILL");
      const heir = start(["worker", path, "--server", at, "--json", "--name", "heir"], where);
      await heir.says(/worker is ready/);
      await ended(tower, runId);
      expect(await runOf(tower, runId)).toMatchObject({
        state: "succeeded",
        attempt: 2,
        node: "heir",
        result: "second try",
      });
      const { store } = await tower.open();
      expect(await store.runs.attempts(runId)).toMatchObject([{ outcome: "lost", node: "doomed" }]);
      expect((await heir.end("SIGTERM")).code).toBe(0);
    });
  });

  test("reports what is wrong with its file, its key and its server", async () => {
    const path = await file("handlers.ts", handlers);
    const wrong = start(["worker", "tasks.ts", "--server", "http://127.0.0.1:9", "--key", `ck_1_${"A".repeat(43)}`]);
    expect(await wrong.ended()).toMatchObject({ code: 2, stderr: expect.stringMatching(/exports no worker/) });
    const keyless = await start(["worker", path, "--server", "http://127.0.0.1:9"]).ended();
    expect(keyless).toMatchObject({ code: 3, stderr: expect.stringMatching(/needs a key[\s\S]*keys create/) });
    const key = ["--key", `ck_1_${"A".repeat(43)}`, "--fail-fast"];
    const far = ["worker", path, "--server", "https://127.0.0.1:9", "--server", "http://node.invalid:9", ...key];
    expect(await start(far).ended(), "its key would be readable on the way").toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/http:\/\/node\.invalid:9.*unencrypted[\s\S]*CARILLON_PLAIN_HTTP/),
    });
    expect((await start(far, { env: { CARILLON_PLAIN_HTTP: "1", SEEN: "/dev/null" } }).ended()).code).toBe(4);
    const alone = await start(
      ["worker", path, "--server", "http://127.0.0.1:9", "--fail-fast", "--key", `ck_1_${"A".repeat(43)}`],
      {
        env: { SEEN: "/dev/null" },
      },
    ).ended();
    expect(alone).toMatchObject({ code: 4 });
    expect(alone.stdout + alone.stderr).toMatch(/cannot be reached/);
    expect((await start(["worker", "--server", "http://127.0.0.1:9"]).ended()).code).toBe(2);
    const open = await start(["server", ...here(), "--listen", "0.0.0.0:0"]).ended();
    expect(open).toMatchObject({ code: 2, stderr: expect.stringMatching(/--behind-proxy/) });
  });
});

describe("carillon keys", () => {
  test("shows a key once, lists it without its secret, and locks its workers out", async () => {
    const made = await json("keys", "create", "reports", "--group", "reports", "--group", "mail");
    expect(made).toMatchObject({
      name: "reports",
      groups: ["reports", "mail"],
      key: expect.stringMatching(/^ck_\d+_.{43}$/),
    });
    const listed = await ask("keys", "list", "--json");
    expect(listed.stdout).not.toContain((made.key as string).slice(5));
    expect(objects(JSON.stringify(JSON.parse(listed.stdout)[0]))).toMatchObject([{ name: "reports", revoked: null }]);
    expect(await ask("keys", "create", "reports")).toMatchObject({ code: 1, stderr: expect.stringMatching(/already/) });
    expect((await ask("keys", "list")).stdout).toMatch(/reports.*valid/);
    expect((await ask("keys", "revoke", "reports")).stdout).toMatch(/locked out/);
    expect((await ask("keys", "list")).stdout).toMatch(/reports.*revoked/);
    expect((await ask("keys", "revoke", "nobody")).code).toBe(3);
    expect((await ask("keys", "create", "../x")).code).toBe(2);
  });
});

describe("a worker in another language", () => {
  test.each([
    ["worker.py", "python3", (at: string) => [at]],
    [
      "worker.sh",
      "sh",
      (at: string) => [
        at,
        "count",
        "sh",
        "-c",
        `read payload; case $payload in *pause*) exec sleep 60;; '{"to":3}') exit 0;; esac; exit 7`,
      ],
    ],
  ])(
    "%s claims, sends heartbeats, finishes, fails, obeys a cancellation, and survives the kill of its server",
    async (name, program, args) => {
      const [first, second] = await Promise.all([serve(), serve()]);
      const key = await makeKey();
      await withTower(async (tower) => {
        await define(tower, "count");
        const env = { PATH: process.env.PATH, HOME: folder, CARILLON_WORKER_KEY: key };
        const worker = spawn(program, [`${examples}/${name}`, ...args(`${first.at},${second.at}`)], {
          env,
          stdio: ["ignore", "pipe", "pipe"],
        });
        let output = "";
        for (const stream of [worker.stdout, worker.stderr]) stream.on("data", (data) => (output += data));
        const exited = once(worker, "exit");
        try {
          const good = (await tower.enqueue("count", { to: 3 })).runId;
          await ended(tower, good);
          expect(await runOf(tower, good)).toMatchObject({ state: "succeeded", attempt: 1 });
          const bad = (await tower.enqueue("count", { to: "13" })).runId;
          await ended(tower, bad);
          expect((await runOf(tower, bad)).state).toBe("failed");
          if (name === "worker.py") {
            const off = (await tower.enqueue("count", { to: 1, notBefore: 1e12 })).runId;
            const { runs } = (await tower.open()).store;
            await until(async () => (await runs.attempts(off)).length >= 2);
            expect((await runs.attempts(off))[1]).toMatchObject({ attempt: 2, outcome: "snoozed", error: null });
            await tower.cancel(off);
            await ended(tower, off);
          }
          const long = (await tower.enqueue("count", { to: 2, pause: 60 })).runId;
          await until(async () => (await runOf(tower, long)).startedMs !== null);
          await first.server.end("SIGKILL");
          // Three heartbeats take longer than a session lives without a heartbeat, so the worker's session has moved to the other server.
          const { store } = await tower.open();
          const beats = async () =>
            (await store.sessions.members()).members.find(({ role }) => role === "worker")?.beat ?? 0;
          const before = await beats();
          await until(async () => (await beats()) >= before + 3);
          expect((await runOf(tower, long)).state).toBe("claimed");
          await tower.cancel(long, "enough");
          await ended(tower, long);
          expect(await runOf(tower, long)).toMatchObject({ state: "cancelled", attempt: 1 });
          await define(tower, "count", { timeout: "1s" });
          const late = (await tower.enqueue("count", { to: 2, pause: 60 })).runId;
          await ended(tower, late);
          expect(await runOf(tower, late)).toMatchObject({ state: "failed", attempt: 1 });
          const last = (await tower.enqueue("count", { to: 3 })).runId;
          await ended(tower, last);
          expect((await runOf(tower, last)).state).toBe("succeeded");
          worker.kill("SIGTERM");
          expect(await exited, output).toEqual([0, null]);
          expect((await store.sessions.members()).members.filter(({ role }) => role === "worker")).toEqual([]);
        } finally {
          worker.kill("SIGKILL");
          await second.server.end("SIGTERM");
        }
      });
    },
  );
});
