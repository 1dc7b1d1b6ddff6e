import { expect, it } from "vitest";
import { Crowd } from "./crowd.ts";

const horizonMs = 15_000;
const dueMs = 10_000_000;

/** Returns `Crowd.begin` for slots that are all due at `dueMs`. */
const begin = (crowd: Crowd, slots: number) => crowd.begin(async (n) => (n <= slots ? dueMs : null), horizonMs);

it("begins so much earlier than the horizon that all slots of a crowd can be planned by then", async () => {
  const crowd = new Crowd();
  expect(await begin(crowd, 19_999), "few slots are planned within the horizon").toBeNull();
  for (const slots of [20_000, 100_000, 1_000_000]) {
    const planned = await begin(crowd, slots);
    expect(planned?.untilMs).toBe(dueMs);
    expect(planned?.atMs).toBeLessThan(dueMs - horizonMs - slots * 0.3);
  }
});

it("begins later once slots were planned quicker, and for the first of several crowds", async () => {
  const crowd = new Crowd();
  const before = await begin(crowd, 1_000_000);
  for (let i = 0; i < 20; i++) crowd.took(2_000, 40);
  const after = await begin(crowd, 1_000_000);
  expect(after?.atMs).toBeGreaterThan(before?.atMs ?? 0);
  expect(after?.atMs).toBeLessThan(dueMs - horizonMs - 1_000_000 * 0.02);
  const laterMs = dueMs + 3_600_000;
  const two = await crowd.begin(async (n) => (n <= 20_000 ? dueMs : n <= 100_000 ? laterMs : null), horizonMs);
  expect(two?.untilMs, "a larger one follows in an hour").toBe(dueMs);
});
