import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { Ensemble } from "./ensemble.ts";
import { serverTitle } from "./servers.ts";

const keeper = fileURLToPath(new URL("keeper.mjs", import.meta.url));

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

it("an ensemble elects another leader when its own is killed or hung", async () => {
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

it("speaks TLS to those whom its authority knows", async () => {
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

it("leaves nothing when the test process is killed, not even a stopped server", async () => {
  const script = `
    import { spawn } from "node:child_process";
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
  const text = await new Promise<string>((resolve) => victim.stdout.once("data", (bytes) => resolve(String(bytes))));
  const { pid, folder } = JSON.parse(text) as { pid: number; folder: string };
  expect(existsSync(folder)).toBe(true);
  process.kill(pid, 0);
  victim.kill("SIGKILL");
  await expect.poll(() => existsSync(folder), { timeout: 30_000 }).toBe(false);
  await expect.poll(() => isAlive(pid), { timeout: 30_000 }).toBe(false);
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false; // that is how the system says no
  }
}
