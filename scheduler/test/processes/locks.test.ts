/** Tests locks with real processes, on each driver: one holder is killed, one is suspended for too long, and one stops. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { zooKeeperServer } from "../support/grace-lock-stage.ts";
import { postgres, redis } from "../support/servers.ts";
import { openStage, until } from "../support/store-stage.ts";

const program = fileURLToPath(new URL("../support/programs/lock-writer.mjs", import.meta.url));
const patienceMs = 60_000;

class Writer {
  readonly said: string[] = [];
  readonly #child: ChildProcess;

  constructor(order: object) {
    this.#child = spawn(process.execPath, [program], {
      env: { ...process.env, CARILLON_TEST_LOCK: JSON.stringify(order) },
      stdio: ["ignore", "pipe", "inherit"],
    });
    if (this.#child.stdout) createInterface({ input: this.#child.stdout }).on("line", (line) => this.said.push(line));
  }

  async says(begin: string): Promise<string> {
    const line = () => this.said.find((one) => one.startsWith(begin));
    await until(`a process says ${begin}`, () => line() !== undefined, patienceMs);
    return line() as string;
  }

  get fence(): bigint {
    return BigInt(this.said.find((one) => one.startsWith("holds "))?.slice(6) ?? -1);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async ended(): Promise<number | null> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) await once(this.#child, "exit");
    return this.#child.exitCode;
  }
}

const drivers = [
  { title: "PostgreSQL", coordination: () => undefined },
  { title: "ZooKeeper", coordination: (id: string) => `zookeeper://${zooKeeperServer()}/${id}` },
  { title: "Redis", coordination: (id: string) => `${redis().url}?prefix=${id}` },
];

describe("a lock passes from a killed process to a stopped one, whose late write is refused, and further", () => {
  it.concurrent.for(drivers)("on $title", async ({ coordination }, { onTestFinished }) => {
    const stage = await openStage(postgres());
    const writers: Writer[] = [];
    onTestFinished(async () => {
      for (const writer of writers) {
        writer.signal("SIGKILL");
        await writer.ended();
      }
      await stage.close();
    });
    const table = `${stage.schema}.guarded`;
    await stage.sql.query(`create table ${table} (fence bigint not null, pid int)`);
    await stage.sql.query(`insert into ${table} values (0)`);
    const { url: store } = stage.server;
    const { schema } = stage;
    const options = { store, schema, coordination: coordination(schema), sessionTimeout: "6s", drain: "5s" };
    const start = () => {
      const writer = new Writer({ options, name: "exports/daily", table });
      writers.push(writer);
      return writer;
    };
    const killed = start();
    await killed.says("holds");
    const [stopped, last] = [start(), start()];
    await Promise.all([stopped.says("ready"), last.says("ready")]);
    killed.signal("SIGKILL");
    await until("one of those who wait has it", () => stopped.fence > 0n || last.fence > 0n, patienceMs);
    const [second, third] = stopped.fence > 0n ? [stopped, last] : [last, stopped];
    expect(second.fence).toBeGreaterThan(killed.fence);
    expect(third.said).toEqual(["ready"]);
    second.signal("SIGSTOP");
    await third.says("holds");
    expect(third.fence).toBeGreaterThan(second.fence);
    const written = async () => (await stage.one<{ fence: number }>(`select fence from ${table}`)).fence;
    await until("the third one has written", async () => BigInt(await written()) === third.fence, patienceMs);
    second.signal("SIGCONT");
    await Promise.all([second.says("refused"), second.says("lost")]);
    expect(await second.ended()).toBe(0);
    expect(third.said.at(-1)).toMatch(/^holds/);
    expect(BigInt(await written())).toBe(third.fence);
  });
});
