import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { carillon } from "../../src/library/carillon.ts";
import type { CarillonOptions } from "../../src/settings/settings.ts";
import { zooKeeperServer } from "../support/grace-lock-stage.ts";
import { postgres, redis } from "../support/servers.ts";
import { openStage, type Stage } from "../support/store-stage.ts";

const program = fileURLToPath(new URL("../support/programs/lock-user.mjs", import.meta.url));
const drivers: [string, (id: string) => string | undefined][] = [
  ["PostgreSQL", () => undefined],
  ["ZooKeeper", (id) => `zookeeper://${zooKeeperServer()}/${id}`],
  ["Redis", (id) => `${redis().url}?prefix=${id}`],
];
/**
 * Session timeout in ms, longer than the time limit of a test: so the lock becomes free only if the stop releases it, not because the
 * session expires.
 */
const sessionTimeoutMs = 600_000;

let stage: Stage;
let child: ChildProcess | undefined;
beforeEach(async () => {
  stage = await openStage(postgres());
});
afterEach(async () => {
  child?.kill("SIGKILL");
  await stage.close();
});

/** Starts a process, and resolves once the process holds the lock or leads. */
async function holder(order: { options: CarillonOptions; elect?: boolean }): Promise<ChildProcess> {
  child = spawn(process.execPath, [program], {
    env: { ...process.env, CARILLON_TEST_LOCK: JSON.stringify({ name: "reports", ...order }) },
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(child.stdout as NonNullable<typeof child.stdout>, "data");
  return child;
}

async function endsBySigterm(child: ChildProcess): Promise<void> {
  child.kill("SIGTERM");
  const [code, signal] = await once(child, "exit");
  expect({ code, signal }).toEqual({ code: null, signal: "SIGTERM" });
}

describe("a process that only uses a lock and is stopped by SIGTERM", () => {
  it.each(drivers)("ends, and its lock is free at once, on %s", async (_, coordinationOf) => {
    const coordination = coordinationOf(stage.schema);
    const options = {
      store: stage.server.url,
      schema: stage.schema,
      ...(coordination === undefined ? {} : { coordination }),
    };
    const tower = carillon({ ...options, handleSignals: false });
    try {
      const process = await holder({ options: { ...options, sessionTimeout: sessionTimeoutMs } });
      expect(await tower.lock("reports").tryAcquire()).toBeUndefined();
      await endsBySigterm(process);
      const held = await tower.lock("reports").acquire({ wait: "2m" });
      await held.release();
    } finally {
      await tower.stop();
    }
  });

  it("ends even if its onLead ignores the abort signal of its term", async () => {
    const options = { store: stage.server.url, schema: stage.schema, drain: 500 };
    await endsBySigterm(await holder({ options, elect: true }));
  });
});
