import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { carillon } from "../../src/library/carillon.ts";
import { zooKeeperServer } from "../support/grace-lock-stage.ts";
import { postgres, redis } from "../support/servers.ts";
import { openStage } from "../support/store-stage.ts";

const program = fileURLToPath(new URL("../support/programs/lock-user.mjs", import.meta.url));
const drivers: [string, (id: string) => string | undefined][] = [
  ["PostgreSQL", () => undefined],
  ["ZooKeeper", (id) => `zookeeper://${zooKeeperServer()}/${id}`],
  ["Redis", (id) => `${redis().url}?prefix=${id}`],
];
/** Without a stop, the lock would be free when the session of its process has ended by silence, and the test's limit would end it first. */
const sessionTimeoutMs = 600_000;

describe("a process that only uses a lock, and is told to stop", () => {
  it.each(drivers)("ends, and its lock is free at once: on %s", async (_, coordinationOf) => {
    const stage = await openStage(postgres());
    const coordination = coordinationOf(stage.schema);
    const options = {
      store: stage.server.url,
      schema: stage.schema,
      ...(coordination === undefined ? {} : { coordination }),
    };
    let child: ChildProcess | undefined;
    const tower = carillon({ ...options, handleSignals: false });
    try {
      const order = { options: { ...options, sessionTimeout: sessionTimeoutMs }, name: "reports" };
      child = spawn(process.execPath, [program], {
        env: { ...process.env, CARILLON_TEST_LOCK: JSON.stringify(order) },
        stdio: ["ignore", "pipe", "inherit"],
      });
      await once(child.stdout as NonNullable<typeof child.stdout>, "data");
      expect(await tower.lock("reports").tryAcquire()).toBeUndefined();
      child.kill("SIGTERM");
      const [code, signal] = await once(child, "exit");
      expect({ code, signal }).toEqual({ code: null, signal: "SIGTERM" });
      const held = await tower.lock("reports").acquire({ wait: "2m" });
      await held.release();
    } finally {
      child?.kill("SIGKILL");
      await tower.stop();
      await stage.close();
    }
  });
});
