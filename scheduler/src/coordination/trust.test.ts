import { expect, it } from "vitest";
import { Trust } from "./trust.ts";

const windowMs = 1_000;

/** A `Trust` that relies on a service, which has listed the process from time 0 on. */
function shown() {
  const trust = new Trust(windowMs);
  const word = { since: 0, until: 5_000 };
  const provider = { shownUntil: () => word.until, shownSince: () => word.since };
  trust.beating("provider", 10);
  trust.beaten("provider", 10);
  return { trust, word, until: (mono: number) => trust.until(provider, mono) };
}

it("follows the coordination provider while its presence has no gap", () => {
  const { word, until } = shown();
  expect(until(100)).toBe(5_000);
  word.until = 9_000;
  expect(until(4_000)).toBe(9_000);
});

it("ends at a gap, whatever the provider shows later, until a heartbeat begun after the gap was applied", () => {
  const { trust, word, until } = shown();
  expect(until(4_000)).toBe(5_000);
  Object.assign(word, { since: 7_000, until: 12_000 });
  expect([until(7_000), until(7_500)]).toEqual([5_000, 5_000]);
  trust.beating("provider", 6_990);
  trust.beaten("provider", 6_990);
  expect(until(7_600)).toBe(5_000);
  trust.beating("provider", 7_100);
  trust.beaten("provider", 7_100);
  expect(until(7_700)).toBe(12_000);
});

it("ends once the provider is seen not to show the process, if that is earlier", () => {
  const { word, until } = shown();
  expect(until(4_000)).toBe(5_000);
  word.until = 0;
  expect([until(4_100), until(4_900)]).toEqual([4_100, 4_100]);
});

it("follows the store while a heartbeat that names the coordination provider is in flight", () => {
  const { trust, word, until } = shown();
  trust.beating("store", 2_000);
  trust.beaten("store", 2_000);
  Object.assign(word, { since: 2_500, until: 7_500 });
  expect(until(2_550)).toBe(3_000);
  trust.beating("provider", 2_600);
  expect(until(2_650)).toBe(3_000);
  trust.beaten("provider", 2_600);
  expect(until(2_700)).toBe(7_500);
});

it("requires both sources while one replaces the other", () => {
  const { trust, word, until } = shown();
  trust.beating("store", 2_000);
  expect(until(2_100)).toBe(3_000);
  word.until = 2_500;
  expect(until(2_200)).toBe(2_500);
  trust.beaten("store", 2_000);
  expect(until(2_300)).toBe(3_000);
});

it("follows the stand-in thread until a heartbeat names another source; both if no proof of it was answered", () => {
  const answered = shown();
  answered.trust.stoodIn(3_000);
  expect(answered.until(2_100)).toBe(3_000);
  answered.trust.beating("provider", 2_200);
  answered.trust.beaten("provider", 2_200);
  expect(answered.until(2_300)).toBe(5_000);
  const unanswered = shown();
  unanswered.trust.stoodIn(0);
  // No heartbeat of the stand-in thread was answered, so the row may name either backing, and trust ends when the earlier of the two ends.
  expect(unanswered.until(2_100)).toBeLessThanOrEqual(1_010);
});
