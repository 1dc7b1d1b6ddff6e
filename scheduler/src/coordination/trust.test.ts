import { expect, it } from "vitest";
import { Trust } from "./trust.ts";

const windowMs = 1_000;

/** A `Trust` that relies on a service, which has listed the process from time 0 on. */
function shown() {
  const trust = new Trust(windowMs);
  const word = { since: 0, until: 5_000 };
  const witness = { shownUntil: () => word.until, shownSince: () => word.since };
  trust.beating("witness", 10);
  trust.beaten("witness", 10);
  return { trust, word, until: (mono: number) => trust.until(witness, mono) };
}

it("goes by the witness's word while that has no gap", () => {
  const { word, until } = shown();
  expect(until(100)).toBe(5_000);
  word.until = 9_000;
  expect(until(4_000)).toBe(9_000);
});

it("ends where a gap was, whatever the witness says since, until a beat that began after it was applied", () => {
  const { trust, word, until } = shown();
  expect(until(4_000)).toBe(5_000);
  Object.assign(word, { since: 7_000, until: 12_000 });
  expect([until(7_000), until(7_500)]).toEqual([5_000, 5_000]);
  trust.beating("witness", 6_990);
  trust.beaten("witness", 6_990);
  expect(until(7_600)).toBe(5_000);
  trust.beating("witness", 7_100);
  trust.beaten("witness", 7_100);
  expect(until(7_700)).toBe(12_000);
});

it("ends where it is noticed that the witness does not show it, if that is before its time", () => {
  const { word, until } = shown();
  expect(until(4_000)).toBe(5_000);
  word.until = 0;
  expect([until(4_100), until(4_900)]).toEqual([4_100, 4_100]);
});

it("goes by the store's word, with what is shown since, while a beat is under way that tells of the witness", () => {
  const { trust, word, until } = shown();
  trust.beating("store", 2_000);
  trust.beaten("store", 2_000);
  Object.assign(word, { since: 2_500, until: 7_500 });
  expect(until(2_550)).toBe(3_000);
  trust.beating("witness", 2_600);
  expect(until(2_650)).toBe(3_000);
  trust.beaten("witness", 2_600);
  expect(until(2_700)).toBe(7_500);
});

it("wants both words while one backing follows the other", () => {
  const { trust, word, until } = shown();
  trust.beating("store", 2_000);
  expect(until(2_100)).toBe(3_000);
  word.until = 2_500;
  expect(until(2_200)).toBe(2_500);
  trust.beaten("store", 2_000);
  expect(until(2_300)).toBe(3_000);
});

it("goes by a stand-in's word until a beat tells of another; where none of its proofs was answered, by both", () => {
  const answered = shown();
  answered.trust.stoodIn(3_000);
  expect(answered.until(2_100)).toBe(3_000);
  answered.trust.beating("witness", 2_200);
  answered.trust.beaten("witness", 2_200);
  expect(answered.until(2_300)).toBe(5_000);
  const unanswered = shown();
  unanswered.trust.stoodIn(0);
  // No heartbeat of the stand-in thread was answered, so the row may name either backing, and trust ends when the earlier of the two ends.
  expect(unanswered.until(2_100)).toBeLessThanOrEqual(1_010);
});
