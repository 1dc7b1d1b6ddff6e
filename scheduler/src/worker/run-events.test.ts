import { expect, it } from "vitest";
import { silentLog } from "../base/log.ts";
import type { RunNotice } from "../run/handler.ts";
import { RunEvents } from "./run-events.ts";
import type { HeldRun } from "./running/held-run.ts";

it("a listener that throws or rejects is logged, and does not affect other listeners", async () => {
  const logged: unknown[] = [];
  const heard: RunNotice[] = [];
  const log = { ...silentLog, error: (fields: object) => void logged.push(fields) };
  const listeners = [
    () => {
      throw new Error("thrown");
    },
    async () => {
      throw new Error("rejected");
    },
    (notice: RunNotice) => void heard.push(notice),
  ];
  const run = { id: 1, task: "t", attempt: 1, claim: { slotMs: null, dueMs: 5 }, startedMs: 6 } as unknown as HeldRun;
  new RunEvents(listeners, () => 7, log).tell(run);
  await Promise.resolve();
  expect(heard).toMatchObject([{ kind: "started", runId: 1, startedMs: 6 }]);
  expect(logged).toMatchObject([{ error: "thrown" }, { error: "rejected" }]);
});
