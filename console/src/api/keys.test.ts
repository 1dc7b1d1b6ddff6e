import { expect, test } from "vitest";
import { keys } from "./keys.ts";

test("equal requests have the same key, also after a different request in between, which has another key", () => {
  const keyOf = keys();
  const first = keyOf({ reason: "slow", options: { timeout: "2h" } });
  expect(first).toMatch(/^[0-9a-f]{32}$/);
  const changed = keyOf({ reason: "too slow", options: { timeout: "2h" } });
  expect(changed).not.toBe(first);
  expect(keyOf({ reason: "slow", options: { timeout: "2h" } })).toBe(first);
  expect(keys()({ reason: "slow", options: { timeout: "2h" } })).not.toBe(first);
});
