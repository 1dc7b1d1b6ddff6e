import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import type { Member } from "../../cluster/session-store.ts";
import { every } from "../../schedule/schedule.ts";
import type { ProductionFacts } from "../../store/postgres/cluster/production.ts";
import type { ClusterFacts } from "../../store/postgres/runs/inspect.ts";
import { defineTask } from "../../task/task.ts";
import { checkProduction } from "./production-checks.ts";

const nowMs = Date.parse("2026-11-28T12:00:00Z");
const member = (over: Partial<Member> = {}) =>
  ({
    node: "one",
    role: "node",
    host: "vm-1",
    timeoutMs: 6_000,
    groups: ["default"],
    seenMs: nowMs,
    ...over,
  }) as Member;
const task = { paused: null, definition: defineTask("sweep", { schedule: every("1m") }) };
const members = [member(), member({ node: "two", host: "vm-2" })];
const facts: ProductionFacts = {
  unsafe: [],
  standbys: 1,
  archives: false,
  connections: { most: 97, open: 40 },
  role: "app",
  isSuperuser: false,
  watched: true,
  users: 2,
  admins: 1,
  temporary: [],
};
const way = { embedded: false, plain: [] as string[] };

const found = (
  given: Partial<ProductionFacts> = {},
  cluster: Partial<ClusterFacts> = {},
  by: Partial<typeof way> = {},
) =>
  checkProduction({ ...facts, ...given }, { nowMs, members, tasks: [task], ...cluster } as ClusterFacts, {
    ...way,
    ...by,
  });
const wrong = (...given: Parameters<typeof found>) =>
  found(...given).flatMap(({ what, verdict, advice }) => (verdict === "good" ? [] : [[what, verdict, advice !== ""]]));

it("finds nothing wrong with a production-ready cluster, and follows the order of the page's table", () => {
  expect(wrong()).toEqual([]);
  const page = readFileSync(new URL("../../../../docs/guide/deploying.md", import.meta.url), "utf8");
  const ticks = [...page.matchAll(/^\| \d+ \| `([^`]+)`/gm)].map(([, name]) => name);
  expect(ticks).toHaveLength(12);
  // `doctor` performs the checks "partitions" and "clock" also without --production, so `found` does not contain them.
  expect([...found().map(({ what }) => what), "partitions", "clock"]).toEqual(ticks);
});

it.each<[string, Parameters<typeof found>]>([
  ["a server", [{}, {}, { embedded: true }]],
  ["way", [{}, {}, { plain: ["db.example"] }]],
  ["durability", [{ unsafe: ["fsync"] }]],
  ["connections", [{ connections: { most: 97, open: 78 } }]],
  ["role", [{ isSuperuser: true }]],
  ["planners", [{}, { members: [member(), member({ node: "two" })] }]],
  [
    "planners",
    [{}, { members: [...members.slice(0, 1), member({ host: "vm-2", settings: { observer: true } as never })] }],
  ],
  ["alarms", [{ watched: false }]],
  ["users", [{ temporary: ["ann"] }]],
  ["users", [{ admins: 0 }]],
])("finds a problem with %s", (what, given) => {
  expect(wrong(...given)).toEqual([[what, "problem", true]]);
});

it("finds a group with only one live worker, and a silent node", () => {
  const alone = { members: [...members, member({ groups: ["gpu"], role: "worker", host: "vm-3" })] };
  const gpu = { paused: null, definition: defineTask("render", { group: "gpu" }) } as never;
  expect(wrong({}, { ...alone, tasks: [gpu] })).toEqual([["spare workers", "problem", true]]);
  const silent = [member(), member({ node: "two", host: "vm-2", seenMs: nowMs - 60_000 })];
  expect(wrong({}, { members: silent })).toEqual([
    ["planners", "problem", true],
    ["spare workers", "problem", true],
  ]);
});

it("only remarks on a server whose replicas cannot be seen, as with a managed service", () => {
  expect(wrong({ standbys: 0 })).toEqual([["copies", "remark", true]]);
  expect(wrong({ standbys: 0, archives: true })).toEqual([]);
});
