import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { carillon } from "../../src/library/carillon.ts";
import { every } from "../../src/schedule/schedule.ts";
import { defineTask } from "../../src/task/task.ts";
import { everyPostgres } from "../support/servers.ts";
import { change, openStage, recordingLog, type Stage, until } from "../support/store-stage.ts";

describe.each(everyPostgres())("the ping to an external monitor, on $title", (server) => {
  let stage: Stage;
  const asked: string[] = [];
  const monitor = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    response.writeHead(200).end("OK");
  });

  beforeAll(async () => {
    stage = await openStage(server);
    await new Promise<void>((resolve) => monitor.listen(0, "127.0.0.1", resolve));
  });
  afterAll(async () => {
    await new Promise((resolve) => monitor.close(resolve));
    await stage.close();
  });

  it("detects unplanned slots and unclaimed due runs, and nothing else", async () => {
    const within = { overdueMs: 60_000, unfiredMs: 60_000 };
    const behind = (nowMs: number) => stage.store.alarms.behind(within, nowMs);
    const t = stage.nowMs;
    const task = await stage.task("waits", {});
    expect(await behind(t)).toBeNull();
    await stage.enqueue(task, { dueMs: t });
    expect(await behind(t + 60_000)).toBeNull();
    expect(await behind(t + 60_001)).toMatch(
      /^due runs wait: waits: the oldest is due since .*, and waits for a worker of group default: /,
    );
    await stage.rows("delete from $s.run");
    // The task runs one at a time, so the second run waits for the first, not for a worker.
    const serial = await stage.task("serial", { overlap: "queue" });
    const session = await stage.session("worker");
    for (let n = 0; n < 2; n++) await stage.enqueue(serial, { dueMs: t });
    const claim = { sessionId: session, groupIds: [serial.groupId], exceptTaskIds: [], untilMs: t, limit: 9, nowMs: t };
    expect((await stage.store.claims.claim(claim)).runs).toHaveLength(1);
    expect(await behind(t + 600_000)).toBeNull();
    await stage.rows("delete from $s.run");
    const planned = await stage.task("planned", { schedule: every("1h") });
    const slotMs = planned.nextSlotMs as number;
    expect(await behind(slotMs + 60_000)).toBeNull();
    expect(await behind(slotMs + 60_001)).toMatch(
      /^slots did not fire: planned: a slot came due and was not planned: /,
    );
    await stage.store.tasks.remove("planned", change(t));
    expect(await behind(slotMs + 60_001)).toBeNull();
  });

  it("is sent by the leader while runs are claimed in time, withheld while they are not, and sent again", async () => {
    const { log, lines } = recordingLog();
    const url = `http://127.0.0.1:${(monitor.address() as AddressInfo).port}/ping/canary`;
    const tower = carillon({
      store: server.url,
      schema: stage.schema,
      log,
      handleSignals: false,
      worker: false,
      alarms: { ping: { url, every: "1s" }, overdue: "1s" },
    });
    await tower.start();
    try {
      await until("it was given", () => asked.length > 1, 60_000);
      expect(new Set(asked)).toEqual(new Set(["GET /ping/canary"]));
      const { store } = await tower.open();
      await store.tasks.save(defineTask("nobody", {}), null, change(stage.nowMs));
      await tower.enqueue("nobody", null);
      const said = (message: string) => lines.filter((line) => line.message === message);
      await until("it was kept back", () => said("the ping is not given").length > 0, 60_000);
      expect(said("the ping is not given")).toMatchObject([
        { level: "warn", fields: { why: expect.stringContaining("due runs wait: nobody") } },
      ]);
      const before = asked.length;
      await stage.rows("delete from $s.run");
      await until("it was given again", () => said("the ping is given again").length > 0, 60_000);
      expect(asked.length).toBeGreaterThan(before);
      expect(JSON.stringify(lines)).not.toContain("canary");
    } finally {
      await tower.stop();
    }
  });
});
