import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { afterAll, expect, test } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import { carillon } from "../../src/index.ts";
import { postgres } from "../support/servers.ts";
import { until } from "../support/store-stage.ts";

const program = fileURLToPath(new URL("../support/programs/fan-out.mjs", import.meta.url));
const schema = `fan_out_${randomBytes(4).toString("hex")}`;
const store = postgres().url;
const tower = carillon({ store, schema, worker: false, handleSignals: false, log: silentLog });
const processes: ChildProcess[] = [];

afterAll(async () => {
  for (const child of processes) child.kill("SIGKILL");
  await tower.stop();
  const database = new pg.Client({ connectionString: store });
  await database.connect();
  await database.query(`drop schema if exists ${schema} cascade`);
  await database.end();
});

/** Starts a process. @returns the process, and a function that returns its output so far */
async function start(name: string): Promise<{ child: ChildProcess; said: () => string }> {
  const child = spawn(process.execPath, [program], {
    env: { ...process.env, CARILLON_TEST_PROGRAM: JSON.stringify({ store, schema, name }) },
    stdio: ["ignore", "pipe", "inherit"],
  });
  processes.push(child);
  let text = "";
  child.stdout?.on("data", (data) => {
    text += data;
  });
  await until(`${name} is ready`, () => text.includes("ready"), 120_000);
  return { child, said: () => text };
}

test("a fan-out survives removal of the child task and kill -9 of the parent: one join with each child once", async () => {
  const { child, said } = await start("first");
  const { runId } = await tower.enqueue("split");
  await until("half of the children are made", () => said().includes("half"), 120_000);
  const killed = once(child, "exit");
  const removed = tower.remove("doomed");
  child.kill("SIGKILL");
  await Promise.all([killed, removed]);
  await start("second");
  const runs = (await tower.open()).store.runs;
  const list = (task: string) => runs.list({ task, limit: 100 });
  await until("the join has ended", async () => (await list("whole"))[0]?.endedMs != null, 120_000);
  const joins = await list("whole");
  expect(joins).toHaveLength(1);
  expect((await runs.find(joins[0]?.runId as number)).result).toEqual([
    ...Array.from({ length: 10 }, () => "doomed cancelled"),
    ...Array.from({ length: 20 }, () => "piece succeeded"),
  ]);
  expect(await list("piece")).toHaveLength(20);
  expect(await list("doomed")).toHaveLength(10);
  expect(await runs.attempts(runId)).toMatchObject([{ attempt: 1, outcome: "lost", node: "first" }]);
  // Log lines are stored a little later than the handler writes them.
  await until("the second try says that its fan-out was refused", async () =>
    (await runs.logs(runId, 100)).some(({ message }) => message === "refused: TASK_UNKNOWN"),
  );
});
