import { expect, test } from "vitest";
import { knownBrowser, knownBrowserShape, makeKnownBrowser } from "./known-browser.ts";

test("a browser is recognised by its account's cookie until the password changes", () => {
  const cookie = makeKnownBrowser("ann", "a hash");
  expect(cookie).toMatch(knownBrowserShape);
  expect(knownBrowser(cookie, "ann", "a hash")).toBe(cookie.split(".")[0]);
  expect(knownBrowser(cookie, "bob", "a hash")).toBeNull();
  expect(knownBrowser(cookie, "ann", "another hash")).toBeNull();
  expect(knownBrowser(cookie, "ann", null)).toBeNull();
  for (const wrong of [null, "", ".", "a.b", `x${cookie}`, cookie.slice(0, -3)])
    expect(knownBrowser(wrong, "ann", "a hash")).toBeNull();
});
