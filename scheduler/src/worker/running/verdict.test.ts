import { describe, expect, it } from "vitest";
import { tryColumns, tryEvents, tryTable } from "../../../test/oracle/policy-tables.ts";
import { CarillonError } from "../../base/errors.ts";
import { seeded } from "../../base/random.ts";
import { retryIn, snooze } from "../../run/handling/postponed.ts";
import { defineTask, type TaskOptions } from "../../task/task.ts";
import type { HeldRun } from "./held-run.ts";
import { failed, succeeded } from "./verdict.ts";

const reasons: Partial<Record<(typeof tryEvents)[number], CarillonError>> = {
  "takes too long": new CarillonError("TIMEOUT", "the attempt took longer than 1 ms"),
  "is cancelled": new CarillonError("CANCELLED", "by someone"),
  "returns after it was told of its cancellation": new CarillonError("CANCELLED", "by someone"),
  "is stopped with its worker": new CarillonError("STOPPED", "the worker is shutting down"),
  "loses its session": new CarillonError("SESSION_LOST", "silent"),
};
const final = new CarillonError("PAYLOAD_INVALID", "no");
const lossEvents = ["is stopped with its worker", "loses its session"] as const;

/** Returns the verdict on an attempt that was aborted for the given reason, or whose handler threw without an abort. */
function fate(
  event: (typeof tryEvents)[number],
  attempt: number,
  onWorkerLost: TaskOptions["onWorkerLost"] = "retry",
  losses = 0,
) {
  const definition = defineTask("t", { retry: { attempts: 3 }, onWorkerLost });
  const run = {
    attempt,
    claim: { losses },
    abortReason: reasons[event],
    known: { definition },
    policies: definition,
  } as unknown as HeldRun;
  const thrown =
    event === "throws what another try would not change"
      ? final
      : event === "throws run.retryIn"
        ? retryIn("10m")
        : event === "returns run.snooze"
          ? snooze("10m")
          : new Error("no");
  const returns = event === "returns after it was told of its cancellation";
  const verdict = returns ? succeeded(run, "done") : failed(run, thrown, 0, seeded(1));
  if (verdict.kind === "retry") return verdict.ask ? "undecided" : verdict.snoozed ? "put off" : "tried again";
  return verdict.kind === "ended" ? verdict.outcome : verdict.kind;
}

it.each(tryEvents)("an attempt that %s", (event) => {
  const seen = { "tries left": fate(event, 2), "none left": fate(event, 3) };
  for (const column of tryColumns) expect(seen[column], column).toBe(tryTable[event][column]);
});

it.each(lossEvents)("an attempt that %s ends as its task's options say", (event) => {
  expect([fate(event, 1, "fail"), fate(event, 1, "ask")]).toEqual(["failed", "undecided"]);
});

it("attempts that outlived their worker's session do not count as attempts", () => {
  expect([fate("throws", 4, "retry", 2), fate("throws", 5, "retry", 2)]).toEqual(["tried again", "failed"]);
});

it("a run completed in its own transaction has succeeded, even if cancelled before its handler returned", () => {
  const run = { abortReason: reasons["is cancelled"], completed: true } as unknown as HeldRun;
  expect(succeeded(run, undefined)).toMatchObject({ outcome: "succeeded" });
});

it("a run that returned after its cancellation reports how long after", () => {
  const told = { abortReason: reasons["is cancelled"], completed: false, toldForMs: 5_200.4 } as unknown as HeldRun;
  const { error } = succeeded(told, "done") as { error: string };
  expect(JSON.parse(error)).toMatchObject({
    code: "CANCELLED",
    thrown: "the handler returned 5200 ms after it was told to stop",
  });
});

/** Every operation on this value throws. */
const hostile: unknown = new Proxy(
  {},
  Object.fromEntries(
    (["get", "has", "getPrototypeOf", "ownKeys", "getOwnPropertyDescriptor"] as const).map((trap) => [
      trap,
      () => {
        throw new Error("do not look");
      },
    ]),
  ),
);
const circular = Object.assign(Object.create(null), { self: null as unknown });
circular.self = circular;

describe("any value that a handler throws or returns", () => {
  const definition = defineTask("t", { retry: { attempts: 1 } });
  const lines: string[] = [];
  const log = { warn: (line: string) => void lines.push(line) };
  const run = {
    id: 1,
    attempt: 1,
    claim: {},
    abortReason: undefined,
    known: { definition },
    policies: definition,
    log,
  } as unknown as HeldRun;

  it.each<[string, unknown, RegExp]>([
    ["nothing", undefined, /^undefined$/],
    ["null", null, /^null$/],
    ["a number", 42, /^42$/],
    ["a symbol", Symbol("s"), /^Symbol\(s\)$/],
    ["a function", () => 1, /=> 1$/],
    ["an object", { a: 1 }, /^\{"a":1\}$/],
    ["one that is circular and has no prototype", circular, /^an unreadable object$/],
    ["one that throws when it is looked at", hostile, /^an unreadable object$/],
    [
      "an Error whose message is none",
      Object.assign(new Error("x"), { message: { deep: true } }),
      /^\[object Object\]$/,
    ],
    ["an Error whose stack and code are none", Object.assign(new Error("x"), { stack: 7, code: 7 }), /^x$/],
    ["20 MB of text", "x".repeat(20_000_000), /^x{2000}$/],
    [
      "an Error with 20 MB of code and stack",
      Object.assign(new Error("x"), { code: "c".repeat(2e7), stack: "s".repeat(2e7) }),
      /^x$/,
    ],
    ["half a character and NUL", "\ud800 \0", /^\ufffd \ufffd$/],
  ])("is recorded within limits: %s", (_, thrown, message) => {
    const verdict = failed(run, thrown, 0, seeded(1));
    if (verdict.kind !== "ended") throw new Error(verdict.kind);
    expect(verdict.outcome).toBe("failed");
    expect(String(verdict.error).length).toBeLessThan(10_000);
    expect(JSON.parse(String(verdict.error)).message).toMatch(message);
  });

  it.each<[string, unknown]>([
    ["20 MB", "x".repeat(20_000_000)],
    ["a bigint", 10n],
    ["a circle", circular],
    ["a number that is not finite", { mean: Number.NaN }],
    ["a map", new Map([["a", 1]])],
    ["an error", new Error("no")],
    ["what throws when it is looked at", hostile],
    ["what throws nothing when it is written", { toJSON: () => Promise.reject.call(undefined as never) }],
  ])("ends the run as succeeded, without a result that cannot be stored: %s", (_, value) => {
    lines.length = 0;
    expect(succeeded(run, value)).toEqual({ kind: "ended", outcome: "succeeded", result: null, error: null });
    expect(lines).toEqual([expect.stringMatching(/^the result was not kept: /)]);
  });
});
