import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { silentLog } from "../../base/log.ts";
import { Isolates } from "./isolates.ts";
import { isolationOf, moduleOf } from "./settings.ts";

const usual = { place: "thread", memoryMb: null, most: null, killAfterMs: 1_000 };

describe("the isolation of a handler", () => {
  it("is a thread by default", () => {
    expect(isolationOf("report", undefined)).toEqual(usual);
    expect(isolationOf("report", "thread")).toEqual(usual);
    expect(isolationOf("report", { in: "thread", killAfter: "1s" })).toEqual(usual);
    expect(isolationOf("report", "process")).toEqual({ ...usual, place: "process" });
    expect(isolationOf("report", { in: "process", memoryMb: 512, pool: 4, killAfter: "2s" })).toEqual({
      place: "process",
      memoryMb: 512,
      most: 4,
      killAfterMs: 2_000,
    });
  });

  it.each([
    ["worker", "isolate.in", /isolate\.in cannot be "worker"/],
    [{ on: "thread" }, "isolate.on", /isolate has no "on"/],
    [{ memoryMb: 1 }, "isolate.memoryMb", /isolate\.memoryMb cannot be 1/],
    [{ pool: 0 }, "isolate.pool", /isolate\.pool cannot be 0/],
    [{ killAfter: "11s" }, "isolate.killAfter", /longer than 10 s/],
  ])("cannot be %j", (given, path, message) => {
    expect(() => isolationOf("report", given)).toThrow(
      expect.objectContaining({ code: "TASK_INVALID", path, message: expect.stringMatching(message) }),
    );
  });
});

describe("the module of a handler", () => {
  it("is a file: URL or an absolute path", () => {
    const url = new URL("./settings.ts", import.meta.url);
    for (const given of [url, url.href, fileURLToPath(url)]) expect(moduleOf("report", given)).toBe(url.href);
  });

  it.each([
    ["./report.js", /cannot be at "\.\/report\.js": that is no absolute path/],
    ["https://example.com/report.js", /no file: URL/],
    [new URL("./nowhere.js", import.meta.url), /there is no file .*nowhere\.js for its handler/],
    [new URL(".", import.meta.url), /there is no file/],
    ["file://[", /cannot be at "file:\/\/\[": Invalid URL/],
    ["file://elsewhere/report.js", /cannot be at "file:\/\/elsewhere\/report\.js": .*host/],
  ])("cannot be %s", (given, message) => {
    expect(() => moduleOf("report", given)).toThrow(
      expect.objectContaining({ code: "TASK_INVALID", path: "handler", message: expect.stringMatching(message) }),
    );
  });

  it("replaces the function, which cannot be isolated itself", () => {
    const isolates = new Isolates({ concurrency: 1, log: silentLog });
    const plain = () => 1;
    expect(isolates.handler("report", plain, undefined)).toBe(plain);
    expect(() => isolates.handler("report", plain, "thread")).toThrow(
      expect.objectContaining({ code: "TASK_INVALID", path: "isolate" }),
    );
    expect(isolates.handler("report", new URL("./settings.ts", import.meta.url), undefined)).toBeTypeOf("function");
  });
});
