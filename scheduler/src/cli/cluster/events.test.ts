import { expect, test } from "vitest";
import type { Client } from "../../api/client.ts";
import { serverEvents } from "./events.ts";

test("a failing delivery from an older server, which sends no time of the event", async () => {
  const at = "2026-11-30T12:00:00.000Z";
  const failing = { type: "run.failed", run: 7, task: "bill", attempt: 2, error: "500", at, again: at };
  const consumer = { name: "webhook/billing", place: at, until: at, failing };
  const events = serverEvents({ listEventConsumers: async () => ({ consumers: [consumer] }) } as unknown as Client);
  const [{ failing: read } = { failing: null }] = await events.list();
  expect(read).toMatchObject({ runId: 7, atMs: Date.parse(at) });
  expect(read).not.toHaveProperty("eventMs");
});
