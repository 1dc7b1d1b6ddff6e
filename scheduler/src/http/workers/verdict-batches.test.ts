import { expect, it } from "vitest";
import { silentLog } from "../../base/log.ts";
import type { ClaimStore, Settlement, Verdict } from "../../run/claim-store.ts";
import { VerdictBatches } from "./verdict-batches.ts";

const saying = (fence: number, verdict: Partial<Verdict>): Settlement => ({
  sessionId: 1,
  runId: fence,
  fence,
  attempt: 1,
  taskId: 1,
  linked: false,
  startedMs: null,
  endedMs: 0,
  verdict: { kind: "ended", outcome: "succeeded", result: null, error: null, ...verdict } as Verdict,
});

it("refusals of a verdict that another poll also sends go to the poll they belong to", async () => {
  // Claim 7 has ended with a success, so a failure for it is refused; a repeated success is not.
  const claims = {
    settle: async (_session: number, items: Settlement[]) =>
      new Set(
        items.flatMap(({ fence, verdict }) => ("outcome" in verdict && verdict.outcome === "failed" ? [fence] : [])),
      ),
  } as unknown as ClaimStore;
  const verdictBatches = new VerdictBatches(claims, () => 0, silentLog);
  const both = saying(8, {});
  const failing = verdictBatches.add([saying(7, { outcome: "failed", error: "{}" }), both]);
  // This poll repeats the verdict on claim 8 that is being written, and sends a different verdict on claim 7.
  const succeeding = verdictBatches.add([saying(7, {}), both]);
  expect(await failing).toEqual(new Set([7]));
  expect(await succeeding).toEqual(new Set());
});

it("an unwritable verdict fails the poll that sent it, but not a poll that repeats another of its verdicts", async () => {
  const claims = {
    settle: async (_session: number, items: Settlement[]) => {
      if (items.some(({ fence }) => fence === 7)) throw new Error("out of order");
      return new Set<number>();
    },
  } as unknown as ClaimStore;
  const verdictBatches = new VerdictBatches(claims, () => 0, silentLog);
  const both = verdictBatches.add([saying(7, {}), saying(8, {})]);
  const repeated = verdictBatches.add([saying(8, {})]);
  await expect(both).rejects.toThrow("out of order");
  expect(await repeated).toEqual(new Set());
});
