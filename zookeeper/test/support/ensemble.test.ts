import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { connect, type TLSSocket } from "node:tls";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { connect as connectClient } from "../../src/client/client.ts";
import { Ensemble } from "../../src/testing/ensemble.ts";
import { until } from "../recipes/stage.ts";
import { javaProgram, serverTitle } from "./servers.ts";

const keeper = fileURLToPath(new URL("../../src/testing/keeper.mjs", import.meta.url));

it(`starts, freezes, kills, restarts and wipes ${serverTitle()}`, async () => {
  await using ensemble = await Ensemble.start();
  const { server } = ensemble;
  expect(await server.mode()).toBe("standalone");
  expect(await ensemble.leader()).toBe(server);
  server.freeze();
  expect(await server.mode()).toBeUndefined();
  server.thaw();
  await server.ready();
  await server.kill();
  expect(server.alive).toBe(false);
  server.wipe();
  await server.start();
  expect((await server.counters()).get("znode_count")).toBeGreaterThan(0);
  expect(await server.connections()).toEqual([]);
  expect(await server.watched()).toEqual(new Map());
  expect(await server.ephemerals()).toEqual(new Map());
});

it("cuts a server off from its clients, and shuts it down cleanly", async () => {
  await using ensemble = await Ensemble.start({ servers: 3, partitions: true });
  const [server] = ensemble.servers;
  const zk = await connectClient(server!.address, { sessionTimeoutMs: 6_000 });
  const { session } = zk;
  server!.partition();
  await until("the session ends by the client's own clock", () => session.state === "ended");
  expect(await server!.mode()).not.toBeUndefined(); // it serves clients, and reaches the other servers
  server!.heal();
  await zk.established();
  await zk.close();
  await server!.stop();
  expect(server!.alive).toBe(false);
  await ensemble.leader();
  await server!.start();
  server!.freeze();
  await server!.stop();
  expect([server!.alive, server!.frozen]).toEqual([false, false]);
});

it("reports missing options and files", async () => {
  await using ensemble = await Ensemble.start();
  expect(() => ensemble.server.partition()).toThrow("partitions");
  await expect(Ensemble.start({ jars: "/nowhere/zookeeper.jar" })).rejects.toThrow("ended before it was ready");
  await expect(Ensemble.start({ java: "/nowhere/java" })).rejects.toThrow("spawn /nowhere/java ENOENT");
});

it("finds Java and ZooKeeper if no variable names them", () => {
  const script = `
    import { findJars, findJava } from ${JSON.stringify(new URL("../../src/testing/find.mjs", import.meta.url).href)};
    console.log(JSON.stringify([findJava("java"), findJars()]));
  `;
  const ask = (env: Record<string, string>) => {
    const told = spawnSync(process.execPath, ["--input-type=module", "-e", script], { env, encoding: "utf8" });
    return JSON.parse(told.stdout) as [string | null, string | null];
  };
  const given = { java: dirname(javaProgram("java")), jars: process.env.CARILLON_TEST_ZOOKEEPER_CLASSPATH ?? "" };
  expect(ask({ CARILLON_TEST_ZOOKEEPER_JAVA: given.java, CARILLON_TEST_ZOOKEEPER_CLASSPATH: given.jars })).toEqual([
    given.java,
    given.jars,
  ]);
  expect(ask({ JAVA_HOME: dirname(given.java), ZOOKEEPER_HOME: "/nowhere" })[0]).toBe(given.java);
  expect(ask({ PATH: given.java })[0]).toBe(given.java);
});

it("an ensemble elects another leader if its leader is killed or hangs", async () => {
  await using ensemble = await Ensemble.start({ servers: 3 });
  const first = await ensemble.leader();
  expect(await ensemble.followers()).toHaveLength(2);
  await first.kill();
  const second = await ensemble.leader();
  expect(second).not.toBe(first);
  await first.start();
  expect(await first.mode()).toBe("follower");
  second.freeze();
  expect(await ensemble.leader()).not.toBe(second);
  second.thaw();
  await ensemble.ready();
});

it("accepts TLS from clients that its authority certified", async () => {
  await using ensemble = await Ensemble.start({ tls: true });
  const { tls, server } = ensemble;
  if (tls === undefined) throw new Error("started without TLS");
  const ask = (identity: { cert: string; key: string }) =>
    new Promise<string>((resolve, reject) => {
      let text = "";
      const socket: TLSSocket = connect(
        { port: server.securePort ?? 0, host: "localhost", ca: tls.ca, ...identity },
        () => socket.write("ruok"),
      );
      socket.on("data", (bytes) => {
        text += bytes;
      });
      socket.on("error", reject);
      socket.on("close", () => resolve(text));
    });
  expect(await ask(tls)).toBe("imok");
  expect(await ask(tls.authority.issue("another"))).toBe("imok");
  await expect(ask(tls.authority.issue("late", { until: new Date("2021-01-01T00:00:00Z") }))).rejects.toThrow();
});

it("leaves no process when the test process is killed, not even a stopped server", async () => {
  const script = `
    import { spawn, spawnSync } from "node:child_process";
    import { mkdtempSync } from "node:fs";
    const folder = mkdtempSync(${JSON.stringify(join(tmpdir(), "carillon-afterlife-"))});
    const keeper = spawn(process.execPath, [${JSON.stringify(keeper)}], { stdio: ["pipe", "ignore", "inherit"], detached: true });
    const { pid } = spawn("sleep", ["600"], { detached: true, stdio: "ignore" });
    keeper.stdin.write("pid " + pid + "\\nfolder " + folder + "\\n", () => console.log(JSON.stringify({ pid, folder })));
    process.kill(pid, "SIGSTOP");
    setInterval(() => undefined, 1_000);
  `;
  const victim = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [text] = await once(createInterface({ input: victim.stdout }), "line");
  const { pid, folder } = JSON.parse(text) as { pid: number; folder: string };
  expect(existsSync(folder)).toBe(true);
  process.kill(pid, 0);
  victim.kill("SIGKILL");
  await expect.poll(() => existsSync(folder)).toBe(false);
  await expect.poll(() => isAlive(pid)).toBe(false);
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false; // the system refuses in this way
  }
}
