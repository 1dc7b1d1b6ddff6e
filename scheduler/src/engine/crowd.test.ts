import { expect, it } from "vitest";
import { Crowd } from "./crowd.ts";

const horizonMs = 15_000;
const dueMs = 10_000_000;

/** Returns `Crowd.begin` for slots that are all due at `dueMs`. */
const begin = (crowd: Crowd, slots: number) => crowd.begin(async (n) => (n <= slots ? dueMs : null), horizonMs);

it("begins so much earlier than the horizon that all slots of a crowd can be planned by then", async () => {
  const crowd = new Crowd();
  for (const slots of [19_999, 20_000])
    expect(await begin(crowd, slots), "few slots are planned within the horizon").toBeNull();
  for (const slots of [40_000, 100_000, 1_000_000]) {
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
  const two = await new Crowd().begin(async (n) => (n <= 40_000 ? dueMs : n <= 100_000 ? laterMs : null), horizonMs);
  expect(two?.untilMs, "a larger one follows in an hour").toBe(dueMs);
});

it.each([
  ["an even load of a third of what the planner can do", 1, null],
  ["as many slots within a tenth of the time", 0.1, expect.any(Object)],
])("%s", async (_title, share, planned) => {
  const found = await new Crowd().begin(async (n) => (n <= 200_000 ? dueMs + n * share : null), horizonMs);
  expect(found).toEqual(planned);
});
