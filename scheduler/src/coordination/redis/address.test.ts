import { describe, expect, it } from "vitest";
import { parseRedisUrl } from "./address.ts";

describe("Redis URLs", () => {
  it.each([
    ["redis://h", { kind: "single", hosts: [{ host: "h", port: 6379 }], tls: false, database: 0, prefix: "carillon" }],
    ["redis://h:1/", { hosts: [{ host: "h", port: 1 }], database: 0 }],
    ["rediss://[::1]:7000/3", { hosts: [{ host: "::1", port: 7000 }], tls: true, database: 3, username: undefined }],
    ["redis://:p%40ss@h?prefix=two", { password: "p@ss", username: undefined, prefix: "two", text: "redis://h" }],
    ["redis://anna:a:b@h", { username: "anna", password: "a:b" }],
    ["redis://u:p@ss@h:1/2", { username: "u", password: "p@ss", database: 2, text: "redis://h:1/2" }],
    ["redis+sentinel://s/main?sentinelPassword=p@s", { sentinelPassword: "p@s", text: "redis+sentinel://s/main" }],
    [
      "redis+sentinel://u:p@a:1,b/main/2?sentinelPassword=s",
      {
        kind: "sentinel",
        hosts: [
          { host: "a", port: 1 },
          { host: "b", port: 26379 },
        ],
        master: "main",
        database: 2,
        sentinelPassword: "s",
        text: "redis+sentinel://a:1,b/main/2",
      },
    ],
    ["rediss+cluster://a,b:7001", { kind: "cluster", tls: true, master: "" }],
  ])("%s", (url, expected) => {
    expect(parseRedisUrl(url)).toMatchObject(expected);
  });

  it.each([
    "http://h",
    "redis://",
    "redis://a,b",
    "redis://h:99999",
    "redis://h/x",
    "redis://h/0/1",
    "redis+sentinel://h",
    "redis+cluster://h/1",
    "redis+unix://h",
    "redis://h?prefx=a",
    "redis://h?prefix=a{b}",
    "redis://h?prefix=a:lock",
    "redis://h?prefix=a:election:b",
    "redis://a:b%zz@h",
    "redis://a:1/b@h",
    "redis://a:1?b@h",
  ])("%s is refused", (url) => {
    expect(() => parseRedisUrl(url)).toThrowError(expect.objectContaining({ code: "OPTION_INVALID" }));
  });

  it("never shows the password", () => {
    for (const url of ["redis://u:canary@h:0", "redis://u:canary%zz@h", "redis://u:canary@h/x", "redis:/u:canary@h"]) {
      let shown = "";
      try {
        parseRedisUrl(url);
      } catch (error) {
        shown = JSON.stringify([String(error), (error as { hint: string }).hint]);
      }
      expect(shown).toMatch(/redis/i);
      expect(shown).not.toContain("canary");
    }
    expect(parseRedisUrl("redis://u:canary@h").text).toBe("redis://h");
  });
});
