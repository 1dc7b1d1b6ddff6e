import { expect, it } from "vitest";
import { systemClock } from "../base/clock.ts";
import { silentLog } from "../base/log.ts";
import type { ClaimedRun } from "../run/claim-store.ts";
import { ClaimSync, type ClaimSyncHost } from "./claim-sync.ts";

/** Creates a `ClaimSync` over a store whose answers the test gives, in any order. */
function bookOf() {
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
  return { book: new ClaimSync(host), told, answer: (kind: keyof typeof answers) => answers[kind].shift()?.([]) };
}

it("is moving until the lost session's claims are known, even if the claims are read for a lost reply meanwhile", async () => {
  const { book, told, answer } = bookOf();
  const moved = book.read(1, 2);
  expect(book.moving).toBe(true);
  const read = book.read(2, 2);
  answer("heldBy");
  await read;
  expect(book.moving).toBe(true);
  answer("adopt");
  expect(told.moved).toBe(0);
  await moved;
  expect(book.moving).toBe(false);
  expect(told.moved).toBe(1);
});

it("is moving until the last of several lost sessions is handled", async () => {
  const { book, answer } = bookOf();
  const [first, second] = [book.read(1, 3), book.read(2, 3)];
  answer("adopt");
  await first;
  expect(book.moving).toBe(true);
  answer("adopt");
  await second;
  expect(book.moving).toBe(false);
});
