import { expect, it } from "vitest";
import { CarillonError } from "../../base/errors.ts";
import type { ClaimedRun, ClaimRequest } from "../../run/claim-store.ts";
import { LocalClaimer } from "./local-claims.ts";

it("answers with a created run that this worker could not take, and marks the claim as lost to the claim sync", async () => {
  const told: string[] = [];
  const localClaimer = new LocalClaimer({
    inStep: () => true,
    room: () => 1,
    request: () => ({}) as ClaimRequest,
    take: async (ask: () => Promise<{ runs: ClaimedRun[] }>) => {
      await ask();
      throw new Error("the definition of its task could not be read");
    },
    nudge: () => undefined,
    lost: () => void told.push("lost"),
  });
  expect(await localClaimer.during(async () => "made")).toBe("made");
  expect(told).toEqual(["lost"]);
  const failing = localClaimer.during(async () => {
    throw new CarillonError("TASK_UNKNOWN", "not made");
  });
  await expect(failing).rejects.toThrow("not made");
  expect(told, "a refusal made nothing").toEqual(["lost"]);
});
