import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ClaimedRun } from "../../src/run/claim-store.ts";
import { latenessMs } from "../../src/run/handling/lateness.ts";
import { everyPostgres } from "../support/servers.ts";
import { openStage, type Stage, settlement, succeededVerdict } from "../support/store-stage.ts";

const minute = 60_000;
const parallel = 2_000;
const rounds = 6;
const roundMs = 10 * minute;
/** Time limit that only ends a test that hangs: 12,000 runs take minutes on a busy machine. */
const hangsMs = 30 * minute;
/** How long after a run may start a worker claims it, in ms. */
const claimedAfterMs = 20;
/** The lowest limit of the alarm `late`, in ms. */
const leastLateMs = 100;

describe.each(everyPostgres())("an hour of tasks that wait for their own limits, on $title", (server) => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await openStage(server);
  });
  afterAll(() => stage.close());

  it(
    "has no late start, although 2,000 parallel runs end together beside serial ones",
    async () => {
      const { store, nowMs: beganMs } = stage;
      const sessionId = await stage.session("worker");
      const wide = await stage.task("wide", { group: "load", overlap: { allow: parallel } });
      const serial = await stage.task("serial", { group: "load", overlap: "queue" });
      for (let round = 0; round < rounds; round++)
        await store.runs.enqueue(
          [...Array.from({ length: parallel }, () => stage.write(wide)), stage.write(serial)],
          beganMs,
        );

      const lateMs: number[] = [];
      const waitedMs: number[] = [];
      for (let round = 0; round < rounds; round++) {
        const nowMs = beganMs + round * roundMs;
        await store.plans.admitHeld(nowMs, nowMs);
        const startedMs = nowMs + claimedAfterMs;
        const running: ClaimedRun[] = [];
        for (;;) {
          const claimed = await stage.claim(sessionId, [wide], startedMs);
          if (claimed.length === 0) break;
          running.push(...claimed);
        }
        const started = [wide, serial].map(({ taskId }) => running.filter((run) => run.taskId === taskId).length);
        expect(started).toEqual([parallel, 1]);
        lateMs.push(...running.map((run) => latenessMs(run, startedMs)));
        waitedMs.push(...running.map((run) => startedMs - run.dueMs));
        const endMs = nowMs + roundMs;
        await store.claims.settle(
          sessionId,
          running.map((run) => settlement(run, succeededVerdict, endMs)),
          endMs,
        );
      }
      expect(lateMs).toHaveLength(rounds * (parallel + 1));
      expect(lateMs.filter((ms) => ms > leastLateMs)).toEqual([]);
      expect(Math.max(...waitedMs), "the last runs waited nearly an hour for the limit").toBeGreaterThan(49 * minute);
    },
    hangsMs,
  );
});
