/** Tests a task that is defined to run after another task while a run of the other task is under way. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Verdict } from "../../src/run/claim-store.ts";
import { everyPostgres } from "../support/servers.ts";
import { openStage, type Stage, settlement, succeededVerdict } from "../support/store-stage.ts";

const failedVerdict: Verdict = { kind: "ended", outcome: "failed", result: null, error: '{"message":"no"}' };

describe.each(everyPostgres())("a task that follows another, on $title", (server) => {
  let stage: Stage;
  let session: number;
  beforeAll(async () => {
    stage = await openStage(server);
    session = await stage.session("worker");
  });
  afterAll(() => stage.close());

  it.each([
    ["success", succeededVerdict, {}],
    ["success", succeededVerdict, { history: "failures" }],
    ["failure", failedVerdict, {}],
  ] as const)(
    "begins on %s, even if it is defined after that run was claimed, options %#",
    async (on, verdict, options) => {
      const name = expect.getState().currentTestName?.replace(/\W+/g, "-").slice(-12);
      const upstream = await stage.task(`upstream${name}`, { group: `g${name}`, ...options });
      const beside = await stage.task(`beside${name}`, { group: `g${name}` });
      await stage.enqueue(upstream);
      await stage.enqueue(beside);
      const claimed = await stage.claim(session, [upstream, beside]);
      expect(claimed.map(({ linked }) => linked)).toEqual([false, false]);
      const after = await stage.task(`after${name}`, { group: `h${name}`, after: { tasks: upstream.name, on } });
      const settlements = claimed.map((run) => settlement(run, verdict, stage.nowMs));
      expect(await stage.store.claims.settle(session, settlements, stage.nowMs)).toEqual(new Set());
      expect(await stage.claim(session, [after])).toHaveLength(1);
      expect(await stage.claim(session, [after])).toEqual([]);
    },
  );
});
