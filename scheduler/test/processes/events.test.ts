/** Tests a named consumer of events with real processes: one is killed while its handler runs, and another one takes over. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { carillon } from "../../src/index.ts";
import { postgres } from "../support/servers.ts";
import { openStage, recordingLog, until } from "../support/store-stage.ts";

const program = fileURLToPath(new URL("../support/programs/event-consumer.mjs", import.meta.url));
const patienceMs = 60_000;

class Consumer {
  readonly said: string[] = [];
  readonly child: ChildProcess;

  constructor(order: object) {
    this.child = spawn(process.execPath, [program], {
      env: { ...process.env, CARILLON_TEST_EVENTS: JSON.stringify(order) },
      stdio: ["ignore", "pipe", "inherit"],
    });
    if (this.child.stdout) createInterface({ input: this.child.stdout }).on("line", (line) => this.said.push(line));
  }

  async says(begin: string, count = 1): Promise<void> {
    const heard = () => this.said.filter((line) => line.startsWith(begin)).length >= count;
    await until(`a process says ${begin}`, heard, patienceMs);
  }

  async kill(): Promise<void> {
    this.child.kill("SIGKILL");
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, "exit");
  }
}

it("every event is handled, and never by two consumers at once, despite kills during the handler", async ({
  onTestFinished,
}) => {
  const stage = await openStage(postgres());
  const consumers: Consumer[] = [];
  const { schema } = stage;
  const options = { store: stage.server.url, schema, sessionTimeout: "6s", drain: "1s" };
  const tower = carillon({ ...options, handleSignals: false, log: recordingLog().log } as never);
  onTestFinished(async () => {
    for (const consumer of consumers) await consumer.kill();
    await tower.stop();
    await stage.close();
  });
  const table = `${schema}.handled`;
  await stage.sql.query(
    `create table ${table} (n bigint generated always as identity, run bigint, pid int, began timestamptz, ended timestamptz)`,
  );
  const start = async () => {
    const consumer = new Consumer({ options, name: "billing", table, ms: 200 });
    consumers.push(consumer);
    await consumer.says("ready");
    return consumer;
  };
  tower.task("fine", {}, () => undefined);
  await tower.start();
  const [first] = [await start(), await start()];
  const handles = await tower.enqueueMany("fine", Array.from({ length: 12 }, () => null) as never);
  await until(
    "one of them handles",
    () => consumers.some(({ said }) => said.some((line) => line.startsWith("handles"))),
    patienceMs,
  );
  const serving = () =>
    consumers.find(({ child, said }) => child.signalCode === null && said.some((line) => line.startsWith("handles")));
  const victim = serving() ?? first;
  await victim.says("handles", 3);
  await victim.kill();
  const [heir] = consumers.filter((one) => one !== victim) as [Consumer];
  await heir.says("handles", 2);
  await heir.kill();
  const last = await start();
  await last.says("handles");
  const rows = () =>
    stage.rows<{ run: number; pid: number; began: Date; ended: Date | null }>(
      `select run, pid, began, ended from ${table} order by n`,
    );
  const whole = async () => new Set((await rows()).flatMap(({ run, ended }) => (ended ? [run] : [])));
  await until("all are handled", async () => (await whole()).size === handles.length, patienceMs);
  expect([...(await whole())].toSorted()).toEqual(handles.map(({ runId }) => runId).toSorted());
  const handled = await rows();
  // The event whose handler was killed is delivered again, to the next process.
  for (const dead of [victim, heir]) {
    const own = handled.filter(({ pid }) => pid === dead.child.pid);
    const cut = own.filter(({ ended }) => ended === null);
    expect(cut.length, "of one process at most one event is cut off").toBeLessThanOrEqual(1);
    for (const { run } of cut) expect(handled.filter((one) => one.run === run && one.ended).length).toBe(1);
  }
  const pids = handled.map(({ pid }) => pid).filter((pid, i, all) => pid !== all[i - 1]);
  expect(pids, "each process serves once, one after the other").toEqual(
    [victim, heir, last].map(({ child }) => child.pid),
  );
  for (const [i, { began }] of handled.entries()) {
    const before = handled[i - 1]?.ended;
    if (before) expect(began.getTime()).toBeGreaterThanOrEqual(before.getTime());
  }
});
