import { expect, it } from "vitest";
import { silentLog } from "../base/log.ts";
import { Reporter } from "./reporter.ts";
import type { HeldRun } from "./running/held-run.ts";

const longRun = (id: number, completing: boolean) =>
  ({
    id,
    fence: id,
    state: "running",
    startedMs: 0,
    startedMono: 0,
    reported: false,
    progressText: null,
    completing,
    known: { definition: { graceMs: 1_000 } },
  }) as unknown as HeldRun;

it("leaves out a run completed in its handler's open transaction, whose row is locked until the commit", async () => {
  const reported: number[] = [];
  const claims = {
    report: async (_: number, runs: { runId: number; fence: number }[]) => {
      reported.push(...runs.map((r) => r.runId));
      return new Set(runs.map((r) => r.fence));
    },
  };
  const reporter = new Reporter({ claims, sessionId: () => 1, log: silentLog });
  const runs = [longRun(1, false), longRun(2, true), longRun(3, false)];
  await reporter.reportLong(runs, 2_000);
  expect(reported).toEqual([1, 3]);
  expect(runs.map((run) => run.reported)).toEqual([true, false, true]);
});
