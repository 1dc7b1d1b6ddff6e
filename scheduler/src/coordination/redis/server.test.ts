import { describe, expect, it } from "vitest";
import { CarillonError } from "../../base/errors.ts";
import { checkServer, redisTrouble } from "./server.ts";

const h = { text: "h", prefix: "carillon", database: 0, kind: "single" } as const;
const info = (fields: Record<string, string>) =>
  Object.entries({ redis_version: "7.0.15", maxmemory_policy: "noeviction", role: "master", ...fields })
    .map((field) => `${field.join(":")}\r\n`)
    .join("");

describe("a Redis server", () => {
  it.each(["6.2.0", "6.10.1", "7.0.15", "8.2.1", "10.0.0"])("of version %s is accepted", (version) => {
    expect(checkServer(info({ redis_version: version }), "h")).toBeUndefined();
  });

  it.each([
    [{ redis_version: "5.0.14" }, "COORDINATION_UNSUPPORTED", /5\.0\.14/],
    [{ redis_version: "6.0.16" }, "COORDINATION_UNSUPPORTED", /6\.0\.16/],
    [{ redis_version: "" }, "COORDINATION_UNSUPPORTED", /unknown/],
    [{ maxmemory_policy: "allkeys-lru" }, "COORDINATION_UNSUPPORTED", /allkeys-lru/],
    [{ role: "slave" }, "COORDINATION_UNREACHABLE", /replica/],
  ])("with %j is refused", (fields, code, message) => {
    expect(() => checkServer(info(fields), "h")).toThrowError(
      expect.objectContaining({ code, message: expect.stringMatching(message) }),
    );
  });

  it.each([
    ["NOAUTH Authentication required.", "COORDINATION_REFUSED"],
    ["WRONGPASS invalid username-password pair or user is disabled.", "COORDINATION_REFUSED"],
    ["ERR ACL failure in script: User x has no permissions to run the 'info' command", "COORDINATION_REFUSED"],
    ["NOPERM this user has no permissions to access one of the channels", "COORDINATION_REFUSED"],
    ["WRONGTYPE Operation against a key holding the wrong kind of value", "COORDINATION_FOREIGN"],
    ["FOREIGN other-cluster", "COORDINATION_FOREIGN"],
    ["connect ECONNREFUSED 127.0.0.1:1", "COORDINATION_UNREACHABLE"],
    ["READONLY You can't write against a read only replica.", "COORDINATION_UNREACHABLE"],
    ["OOM command not allowed when used memory > 'maxmemory'.", "COORDINATION_UNREACHABLE"],
  ])("that answers %s causes the documented error", (answer, code) => {
    expect(redisTrouble(new Error(answer), h)).toMatchObject({ code, hint: expect.stringMatching(/\w/) });
  });

  it("is not blamed for Carillon's own errors", () => {
    for (const own of [
      new Error("ERR user_script:3: attempt to index a nil value"),
      new CarillonError("STOPPED", "x"),
    ]) {
      expect(redisTrouble(own, h)).toBe(own);
    }
    const behind = Object.assign(new Error("Failed to refresh slots cache."), { lastNodeError: new Error("NOAUTH") });
    expect(redisTrouble(behind, h)).toMatchObject({ code: "COORDINATION_REFUSED" });
  });
});
