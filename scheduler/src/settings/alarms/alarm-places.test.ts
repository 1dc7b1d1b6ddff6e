import { expect, test } from "vitest";
import type { Told } from "../agreement.ts";
import { alarmPlaces } from "./alarm-places.ts";

const one = (node: string, role: "node" | "worker", alarms?: boolean, observer = false) =>
  ({
    node,
    role,
    host: "h",
    timeoutMs: 6_000,
    settings: { retentionMs: 1, horizonMs: 1, claimAheadMs: 1, observer, ...(alarms === undefined ? {} : { alarms }) },
  }) satisfies Told;

test.each([
  ["a server with channels", [one("a", "node", true), one("w", "worker", false)], "told", []],
  ["a server with, one without", [one("a", "node", true), one("b", "node", false)], "partly", ["b"]],
  [
    "only workers with",
    [one("a", "node", false), one("x", "worker", true), one("w", "worker", true)],
    "elsewhere",
    ["w", "x"],
  ],
  ["only an observer with", [one("a", "node", false), one("o", "node", true, true)], "elsewhere", ["o"]],
  ["workers with, before any server is there", [one("w", "worker", true)], "elsewhere", ["w"]],
  ["none with", [one("a", "node", false), one("w", "worker", false)], "nobody", []],
  ["an older version that does not say", [one("a", "node"), one("w", "worker", true)], "told", []],
] as const)("%s", (_, members, kind, nodes) => {
  expect(alarmPlaces(members)).toEqual({ kind, nodes });
});
