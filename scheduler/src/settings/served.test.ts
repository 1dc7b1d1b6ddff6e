import { expect, test } from "vitest";
import { servedSettings } from "./served.ts";

test("a base path begins with a slash and has no slash at its end; none is the empty text", () => {
  expect(servedSettings({})).toEqual({ basePath: "", frameAncestors: [] });
  for (const [given, path] of [
    ["/", ""],
    ["/carillon", "/carillon"],
    ["/carillon/", "/carillon"],
    ["/a-b/c_d/e.f~1", "/a-b/c_d/e.f~1"],
    ["/v1-of-it", "/v1-of-it"],
  ] as const)
    expect(servedSettings({ basePath: given }).basePath).toBe(path);
});

test.each([
  "carillon",
  "//carillon",
  "/a//b",
  "/a/../b",
  "/a/.",
  "/a b",
  '/a"b',
  "/a;b",
  "/a%2fb",
  "/ä",
  "https://tools.example/carillon",
  "/v1",
  "/v1/x",
  "/assets",
  "/metrics/",
  "/livez",
  `/${"a".repeat(200)}`,
])("the base path %s is refused", (basePath) => {
  expect(() => servedSettings({ basePath })).toThrow(
    expect.objectContaining({ code: "OPTION_INVALID", path: "basePath", hint: expect.stringContaining('"/carillon"') }),
  );
});

test("pages that may show the console in a frame are origins, as browsers write them", () => {
  const given = ["https://Portal.example:443", "http://127.0.0.1:8080/"];
  expect(servedSettings({ frameAncestors: given }).frameAncestors).toEqual([
    "https://portal.example",
    "http://127.0.0.1:8080",
  ]);
  for (const one of [
    "*",
    "https://*.example",
    "'self'",
    "ftp://a.example",
    "https://a.example/page",
    "https://a.example/?x",
    "https://u:p@a.example",
    "https://a.example; script-src *",
  ])
    expect(() => servedSettings({ frameAncestors: [one] }), one).toThrow(
      expect.objectContaining({ code: "OPTION_INVALID", path: "frameAncestors" }),
    );
});

test("a page at an IPv6 address is refused, because the policy could not name it", () => {
  for (const one of ["http://[::1]:8080", "https://[2001:db8::5]"])
    expect(() => servedSettings({ frameAncestors: [one] }), one).toThrow(
      expect.objectContaining({
        code: "OPTION_INVALID",
        path: "frameAncestors",
        message: expect.stringContaining(`the IPv6 address "${one}"`),
        hint: expect.stringContaining("Give the page's host a name."),
      }),
    );
});
