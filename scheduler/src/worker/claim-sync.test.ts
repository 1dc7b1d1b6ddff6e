import { expect, it } from "vitest";
import { systemClock } from "../base/clock.ts";
import { silentLog } from "../base/log.ts";
import type { ClaimedRun } from "../run/claim-store.ts";
import { ClaimSync, type ClaimSyncHost } from "./claim-sync.ts";

/** Creates a `ClaimSync` over a store whose answers the test gives, in any order. */
function syncOf() {
  const answers: Record<"adopt" | "heldBy", ((runs: ClaimedRun[]) => void)[]> = { adopt: [], heldBy: [] };
  const later = (kind: keyof typeof answers) => () =>
    new Promise<ClaimedRun[]>((resolve) => void answers[kind].push(resolve));
  const told = { moved: 0 };
  const host: ClaimSyncHost = {
    claims: { adopt: later("adopt"), heldBy: later("heldBy") },
    clock: systemClock,
    log: silentLog,
    held: new Map(),
    sessionId: () => 2,
    take: (ask) => ask(),
    drop: () => undefined,
    again: () => undefined,
    moved: () => void told.moved++,
  };
  return { sync: new ClaimSync(host), told, answer: (kind: keyof typeof answers) => answers[kind].shift()?.([]) };
}

it("is moving until the lost session's claims are known, even if the claims are read for a lost reply meanwhile", async () => {
  const { sync, told, answer } = syncOf();
  const moved = sync.read(1, 2);
  expect(sync.moving).toBe(true);
  const read = sync.read(2, 2);
  answer("heldBy");
  await read;
  expect(sync.moving).toBe(true);
  answer("adopt");
  expect(told.moved).toBe(0);
  await moved;
  expect(sync.moving).toBe(false);
  expect(told.moved).toBe(1);
});

it("is moving until the last of several lost sessions is handled", async () => {
  const { sync, answer } = syncOf();
  const [first, second] = [sync.read(1, 3), sync.read(2, 3)];
  answer("adopt");
  await first;
  expect(sync.moving).toBe(true);
  answer("adopt");
  await second;
  expect(sync.moving).toBe(false);
});
