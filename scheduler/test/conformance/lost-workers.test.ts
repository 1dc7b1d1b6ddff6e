import { afterAll, beforeAll, expect, test } from "vitest";
import type { Client } from "../../src/api/client.ts";
import { ApiStage } from "../support/api-stage.ts";

const stage = new ApiStage();
let api: Client;
beforeAll(async () => {
  await stage.open();
  api = stage.client("viewer");
});
afterAll(() => stage.close());

const identity = {
  role: "worker" as const,
  host: "rack-7",
  pid: 4_711,
  version: "1",
  timeoutMs: 600_000,
  groups: ["default"],
  labels: {},
  capacity: 2,
  settings: null,
};
/** Opens a session of a worker, and ends it `agoMs` before now for the reason `why`. */
async function ended(node: string, why: string, agoMs: number): Promise<void> {
  const opened = await stage.store.sessions.open({ ...identity, node } as never, Date.now() - agoMs - 60_000);
  if (!("sessionId" in opened)) throw new Error(`${node} is taken`);
  await stage.store.sessions.end(opened.sessionId, null, Date.now() - agoMs, why);
}
const names = async () => (await api.listLostWorkers()).lost.map(({ node }) => node);

test("silent workers are listed as lost until they come back; stopped workers are not listed", async () => {
  await ended("killed", "silent for 15000 ms, seen by atlas", 60_000);
  await ended("unseen", "not shown by ZooKeeper any more, seen by atlas", 30_000);
  await ended("stopped", "stopped", 30_000);
  await ended("long-ago", "silent for 15000 ms, seen by atlas", 25 * 3_600_000);
  await ended("came-back", "silent for 15000 ms, seen by atlas", 30_000);
  await stage.store.sessions.open({ ...identity, node: "came-back" } as never, Date.now());
  await ended("ended-well", "silent for 15000 ms, seen by atlas", 90_000);
  await ended("ended-well", "stopped", 30_000);
  expect(await names()).toEqual(["unseen", "killed"]);
  const [, killed] = (await api.listLostWorkers()).lost;
  expect(killed).toMatchObject({ host: "rack-7", pid: 4_711, why: "silent for 15000 ms, seen by atlas" });
  expect(Date.parse(killed?.ended ?? "")).toBeGreaterThan(Date.parse(killed?.started ?? ""));
});

test("a user limited to namespaces sees only the lost workers of their groups", async () => {
  const some = stage.clientOf(await stage.token("viewer", { where: ["billing"] }));
  expect((await some.listLostWorkers()).lost).toEqual([]);
});

test("an audit entry about a run names its task", async () => {
  await stage.task("counted");
  const { run } = await stage.client("operator").runTask({ task: "counted" });
  await stage.client("operator").cancelRun({ run });
  const { items } = await stage.client("admin").listAudit({ about: "run", named: String(run) });
  expect(items.length).toBeGreaterThan(0);
  expect(items.map(({ task }) => task)).toEqual(items.map(() => "counted"));
  const others = await stage.client("admin").listAudit({ about: "task", named: "counted" });
  expect(others.items.map(({ task }) => task)).toEqual(others.items.map(() => null));
});
