import { expect, test } from "vitest";
import type { Member } from "../../cluster/session-store.ts";
import { checkAlarms } from "./alarm-checks.ts";

const nowMs = 1e12;
const one = (node: string, role: "node" | "worker", alarms: boolean, seenMs = nowMs) =>
  ({ node, role, timeoutMs: 6_000, seenMs, settings: { alarms } }) as unknown as Member;
const found = (...members: Member[]) =>
  checkAlarms({ members, nowMs }).map(({ what, verdict, found }) => `${verdict} ${what}: ${found}`);

test("doctor reports which processes send alarms, and where channels are configured without effect", () => {
  const [server, worker] = [one("a", "node", true), one("w", "worker", true)];
  expect(found(server, worker)).toEqual(["good alarm channels: every process that may lead has some"]);
  expect(found(server, one("b", "node", false))).toEqual(["remark alarm channels: none in b, which may lead"]);
  expect(found(one("a", "node", false), worker)).toEqual([
    "problem alarm channels: only in w, and no such process looks for alarms",
  ]);
  expect(found(one("a", "node", false))).toEqual([
    "remark alarm channels: no process has any: nobody is told of failures",
  ]);
  expect(found(one("gone", "node", false, 0)), "where no process lives").toEqual([]);
});
