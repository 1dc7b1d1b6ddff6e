import { describe, expect, test } from "vitest";
import { checkHook, checkHookName, type HookContent } from "./hook.ts";
import { isForHook } from "./hook-store.ts";
import { runOf } from "./mapping.ts";

const base = { secret: "s", scheme: "bearer", task: "settle" } as const;
const body = {
  id: "evt_1",
  type: "paid",
  data: { object: { id: "in_1", lines: [{ n: 1 }, { n: 2 }] } },
  "a/b~c": 5,
  wait: "10m",
};
/** An object with many entries of the same value. */
const many = (count: number, value: string) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`v${at}`, value]));
const run = (more: Partial<HookContent>, headers = {}) => runOf({ ...base, ...more }, { headers, body });

describe("the run of a request", () => {
  test("has the body, a part of it, or an object of parts as its payload", () => {
    expect(run({})).toEqual({ task: "settle", payload: body });
    expect(run({ payload: "/data/object/lines/1" })?.payload).toEqual({ n: 2 });
    expect(run({ payload: "/a~1b~0c" })?.payload).toBe(5);
    expect(run({ payload: "/data/none" })?.payload).toBeUndefined();
    const payload = { invoice: "/data/object/id", event: "header:X-Event", none: "/constructor", all: "" };
    expect(run({ payload }, { "x-event": "push" })?.payload).toEqual({
      invoice: "in_1",
      event: "push",
      none: null,
      all: body,
    });
  });

  test("has the task that a value chooses, and there is none for other values", () => {
    const task = { by: "/type", of: { paid: "settle", failed: "dun" } };
    expect(run({ task })?.task).toBe("settle");
    expect(run({ task: { ...task, by: "header:x-event" } }, { "x-event": "failed" })?.task).toBe("dun");
    for (const by of ["/none", "/data", "/id"]) expect(run({ task: { ...task, by } })).toBeNull();
    expect(run({ task: { ...task, by: "header:x-event" } }, { "x-event": "constructor" })).toBeNull();
  });

  test("has the id of the delivery as its key, by the scheme, unless the hook says otherwise", () => {
    expect(run({ scheme: "github" }, { "x-github-delivery": "d-1" })?.key).toBe("d-1");
    expect(run({ scheme: "standard" }, { "webhook-id": "msg_1" })?.key).toBe("msg_1");
    expect(run({ scheme: "stripe" })?.key).toBe("evt_1");
    expect(run({ scheme: "github", key: "/data/object/id" })?.key).toBe("in_1");
    expect(run({ key: "/a~1b~0c" })?.key).toBe("5");
    for (const key of ["/none", "/data", "header:x-none"])
      expect(() => run({ key })).toThrow(expect.objectContaining({ code: "REQUEST_INVALID", path: "key" }));
  });

  test("is due after a delay of the hook, or of the request", () => {
    expect(run({ delay: "5m" })?.in).toBe("5m");
    expect(run({ delay: "/wait" })?.in).toBe("10m");
    expect(() => run({ delay: "/data" })).toThrow(expect.objectContaining({ code: "REQUEST_INVALID", path: "delay" }));
  });
});

describe("a hook", () => {
  test("is taken as it is", () => {
    const hook = {
      ...base,
      payload: "",
      key: "header:X-Id",
      delay: "/wait",
      uniqueFor: "1d",
      tolerance: 0,
      enabled: false,
      description: "d",
    };
    expect(checkHook("github", hook)).toEqual(hook);
    expect(checkHook("team/github", { ...base, task: "team/settle" })).toEqual({ ...base, task: "team/settle" });
  });

  test("may have 100 values, and a key for a second unless its requests could be sent again for longer", () => {
    const of = many(100, "settle");
    const payload = many(100, "/a");
    for (const more of [
      { task: { by: "/t", of }, payload },
      { uniqueFor: "1s", key: "/id" },
      { scheme: "github", uniqueFor: 1_000 },
      { scheme: "stripe", uniqueFor: "10m" },
      { scheme: "stripe", uniqueFor: "1s", tolerance: 500 },
    ])
      expect(checkHook("github", { ...base, ...more })).toEqual({ ...base, ...more });
  });

  test("is refused with the path of what is wrong", () => {
    for (const [more, path, code = "OPTION_INVALID"] of [
      [{ scheme: "sha1" }, "scheme"],
      [{ secret: "" }, "secret"],
      [{ task: undefined }, "task"],
      [{ task: "team/settle" }, "task"],
      [{ task: { by: "/t", of: { a: "settle", b: "team/settle" } } }, "task"],
      [{ payload: "data" }, "payload"],
      [{ key: "/a~2" }, "key"],
      [{ key: "header:" }, "key"],
      [{ uniqueFor: "never" }, "uniqueFor", "DURATION_INVALID"],
      [{ tolerance: "soon" }, "tolerance", "DURATION_INVALID"],
      [{ delay: "later" }, "delay", "DURATION_INVALID"],
      [{ tasks: [] }, ""],
      [{ task: { by: "/t", of: {} } }, "task.of"],
      [{ task: { by: "/t", of: many(101, "settle") } }, "task.of"],
      [{ task: { by: "header:Cookie", of: { a: "settle" } } }, "task.by"],
      [{ payload: many(101, "/a") }, "payload"],
      [{ payload: "header:authorization" }, "payload"],
      [{ payload: { who: "header:Proxy-Authorization" } }, "payload.who"],
      [{ key: "header:X-Hub-Signature-256" }, "key"],
      [{ delay: "header:stripe-signature" }, "delay"],
      [{ delay: "/a~2" }, "delay"],
      [{ delay: "header:" }, "delay"],
      [{ uniqueFor: 0 }, "uniqueFor", "DURATION_INVALID"],
      [{ uniqueFor: "0s" }, "uniqueFor", "DURATION_INVALID"],
      [{ uniqueFor: "999ms" }, "uniqueFor", "DURATION_INVALID"],
      [{ scheme: "stripe", uniqueFor: "599s" }, "uniqueFor"],
      [{ scheme: "standard", uniqueFor: "1m" }, "uniqueFor"],
      [{ scheme: "standard", uniqueFor: "1h", tolerance: "31m" }, "uniqueFor"],
      [{ scheme: "standard", tolerance: "3d" }, "uniqueFor"],
    ] as const)
      expect(() => checkHook("github", { ...base, ...more }), JSON.stringify(more)).toThrow(
        expect.objectContaining({ code, path }),
      );
    expect(() => checkHook("github", undefined)).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }));
    for (const name of ["", "a b", "/a", "x".repeat(101), "钟"])
      expect(() => checkHookName(name), name).toThrow(
        expect.objectContaining({ code: "OPTION_INVALID", path: "hook" }),
      );
  });

  test("has no secret without a task, because a secret is for tasks", () => {
    const task = { by: "/t", of: {} };
    for (const tasks of [null, [], ["team/settle"]]) expect(isForHook({ task }, tasks)).toBe(false);
    expect(isForHook({ task: { ...task, of: { a: "team/settle" } } }, ["team/settle"])).toBe(true);
    expect(isForHook({ task: { ...task, of: { a: "team/settle" } } }, null)).toBe(false);
    expect(isForHook({ task: "settle" }, null)).toBe(true);
  });
});
