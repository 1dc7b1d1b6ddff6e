import { describe, expect, it } from "vitest";
import type { Member } from "../../cluster/session-store.ts";
import { every } from "../../schedule/schedule.ts";
import type { ClusterFacts, ServerFacts } from "../../store/postgres/runs/inspect.ts";
import { defineTask } from "../../task/task.ts";
import type { TaskRecord } from "../../task/task-record.ts";
import { type Check, checkCluster, checkEmbedded, checkNode, checkServer, checkWay } from "./checks.ts";

const nowMs = Date.parse("2026-11-28T12:00:00Z");
const member = (over: Partial<Member> = {}): Member => ({
  node: "atlas",
  role: "node",
  host: "vm",
  pid: 1,
  version: "0.1.0",
  timeoutMs: 6_000,
  groups: ["default"],
  sessionId: 1,
  beat: 9,
  witnessed: false,
  startedMs: nowMs - 60_000,
  seenMs: nowMs - 1_000,
  stillMs: null,
  ...over,
});
const task = (name: string, group = "default", paused = false): TaskRecord => ({
  taskId: 1,
  name,
  version: 1,
  definition: defineTask(name, { schedule: every("1m"), group }),
  groupId: 1,
  changedMs: 0,
  paused: paused ? { atMs: 0, by: "me", why: "", untilMs: null } : null,
  nextSlotMs: nowMs + 1_000,
});
const healthy = (over: Partial<ClusterFacts> = {}): ClusterFacts => ({
  nowMs,
  members: [member()],
  leadership: { term: 7, sessionId: 1 },
  tasks: [task("heartbeat")],
  partitions: [{ table: "slot", untilMs: nowMs + 7 * 86_400_000 }],
  maker: { role: "app", owner: "app", may: true },
  rightsLacking: [],
  overdue: [],
  fullGroups: [],
  stuck: [],
  unplanned: [],
  recovery: undefined,
  timeBack: undefined,
  clusterId: "c1",
  coordination: "store",
  sharedNames: [],
  sharedAddresses: [],
  zones: { count: 0, newest: null },
  zonesBehind: [],
  ...over,
});
const server = (over: Partial<ServerFacts> = {}): ServerFacts => ({
  version: "15.14",
  versionNumber: 150_014,
  readOnly: false,
  roundTripMs: 0.4,
  clockOffsetMs: 1,
  clockShiftMs: 0,
  clockSinceMs: null,
  migration: 2,
  migrationKnown: 2,
  serves: true,
  pooling: "none",
  compiles: false,
  snapshots: [],
  disk: "room",
  ...over,
});

/** Returns the findings that are not good, by their subject. */
const wrong = (over: Partial<ClusterFacts>) =>
  Object.fromEntries(
    checkCluster(healthy(over))
      .filter(({ verdict }) => verdict !== "good")
      .map(({ what, verdict, found }) => [what, `${verdict}: ${found}`]),
  );
const wrongServer = (over: Partial<ServerFacts>) =>
  checkServer(server(over), "PostgreSQL at db:5432/app", "carillon")
    .filter(({ verdict }) => verdict !== "good")
    .map(({ what, verdict }) => [what, verdict]);

describe("doctor", () => {
  it("remarks on a remote store that is reached without TLS", () => {
    expect(checkWay("postgres://me@db.example/app", {})).toMatchObject([
      {
        what: "store",
        verdict: "remark",
        found: expect.stringMatching(/^the store at db\.example is reached without TLS/),
      },
    ]);
    expect(checkWay("postgres://me@db.example/app?sslmode=verify-full", {})).toEqual([]);
  });

  it("finds nothing wrong with a healthy cluster", () => {
    const checks = [
      checkNode("20.19.0"),
      checkNode("24.1.0"),
      ...checkServer(server(), "PostgreSQL at db:5432/app", "carillon"),
      ...checkCluster(healthy()),
    ];
    expect(checks.filter(({ verdict }) => verdict !== "good")).toEqual([]);
    expect(checks.every(({ found }) => found !== "")).toBe(true);
  });

  it("reports a server's full disk, and an embedded store's free space with its URL", () => {
    expect(wrongServer({ disk: "full" })).toEqual([["disk", "problem"]]);
    expect(wrongServer({ disk: null }), "it may not say").toEqual([]);
    const found = (mebibytes: number) =>
      checkEmbedded({ url: "postgres://here", data: "/d", freeBytes: mebibytes * 1_048_576 });
    expect(found(3_000)).toEqual([
      { what: "connection", verdict: "good", found: "postgres://here", advice: "" },
      { what: "data folder", verdict: "good", found: "3000 MiB are free on the disk of /d", advice: "" },
    ]);
    expect([found(900)[1]?.verdict, found(10)[1]?.verdict]).toEqual(["remark", "problem"]);
  });

  it("remarks on snapshots that are minutes or, without a known age, many transactions old, and how to end them", () => {
    const young = { kind: "transaction", holder: "psql, pid 7", ms: 60_000, transactions: 900_000 } as const;
    const old = { ...young, holder: "pg_dump, pid 8", ms: 420_000 };
    const slot = { kind: "slot", holder: "replica_2", ms: null, transactions: 150_000 } as const;
    const found = (...snapshots: ServerFacts["snapshots"]) =>
      checkServer(server({ snapshots }), "", "c").find(({ what }) => what === "snapshots");
    expect(found(young, { ...slot, transactions: 5 })?.verdict).toBe("good");
    expect(found(old, slot)).toMatchObject({ verdict: "remark" });
    expect(found(old, slot)?.found).toContain("a transaction (pg_dump, pid 8), 7 min ago");
    expect(found(old, slot)?.found).toContain("a replication slot (replica_2), 150000 transactions ago");
    expect(found(old, slot)?.advice).toMatch(/pg_terminate_backend.+pg_drop_replication_slot/);
  });

  it("gives advice for everything that is wrong", () => {
    const all = [
      checkNode("20.18.9"),
      ...checkServer(server({ versionNumber: 140_000, readOnly: true, migration: 0, clockOffsetMs: 60_000 }), "", "c"),
      ...checkCluster(healthy({ members: [], leadership: { term: 3, sessionId: null }, partitions: [] })),
    ].filter(({ verdict }) => verdict !== "good");
    expect(all.map(({ what }) => what)).toEqual([
      "Node.js",
      "store",
      "writable",
      "schema",
      "clock",
      "partitions",
      "leader",
      "workers",
    ]);
    for (const { advice } of all) expect(advice).not.toBe("");
  });

  it("distinguishes old, new and missing schemas", () => {
    expect(wrongServer({ migration: 0 })).toEqual([["schema", "problem"]]);
    expect(wrongServer({ migration: 3, serves: false })).toEqual([["schema", "problem"]]);
    expect(wrongServer({ migration: 3 })).toEqual([["schema", "remark"]]);
    expect(wrongServer({ migration: 1 })).toEqual([["schema", "remark"]]);
    expect(wrongServer({ clockOffsetMs: -700 })).toEqual([["clock", "remark"]]);
  });

  it("reports the error margin of the clock's offset if the store answers slowly", () => {
    const clock = (roundTripMs: number) =>
      checkServer(server({ clockOffsetMs: 6_000, roundTripMs }), "", "c").find(({ what }) => what === "clock")?.found;
    expect(clock(1)).toBe("this machine's is 6.0 s behind the store's");
    expect(clock(400)).toBe("this machine's is 6.0 s (± 200 ms) behind the store's");
  });

  it("reports a step of the store's clock, and measures this machine's clock against cluster time", () => {
    const stepped = { clockOffsetMs: 7_200_000, clockShiftMs: -7_200_000, clockSinceMs: Date.UTC(2026, 10, 25, 9) };
    expect(wrongServer(stepped)).toEqual([["store's clock", "problem"]]);
    expect(checkServer(server(stepped), "", "c").slice(-2)).toEqual([
      {
        what: "store's clock",
        verdict: "problem",
        found: "it is 2 h ahead of cluster time, which goes on without it since 2026-11-25T09:00:00.000Z",
        advice: expect.stringContaining("carillon clock adopt"),
      },
      { what: "clock", verdict: "good", found: expect.stringContaining("of cluster time"), advice: "" },
    ]);
    expect(wrongServer({ ...stepped, clockOffsetMs: 1 })).toEqual([
      ["store's clock", "problem"],
      ["clock", "remark"],
    ]);
  });

  it("reports for how many days partitions exist, and who creates more", () => {
    const days = (untilDays: number, may: boolean) =>
      wrong({
        partitions: [{ table: "slot", untilMs: nowMs + untilDays * 86_400_000 }],
        maker: { role: "app", owner: may ? "app" : "boss", may },
      }).partitions;
    expect([days(7, true), days(3, true), days(8, false)]).toEqual([undefined, undefined, undefined]);
    expect(days(3, false)).toBe("remark: made for 3 d ahead; boss makes them, app may not");
    expect(days(0.5, false)).toBe("problem: slot: less than a day ahead; boss makes them, app may not");
    expect(days(0.5, true)).toBe("problem: slot: less than a day ahead; app may make them");
  });

  it("reports the last recovery: its time, how far the store went back, the restored data and the missing members", () => {
    const last = {
      beganMs: nowMs - 3_600_000,
      endedMs: nowMs - 3_598_000,
      backMs: 4_200,
      runs: 731,
      verdicts: 12,
      inDoubt: 7,
    };
    const of = (over: object) => checkCluster(healthy({ recovery: { ...last, missing: [], ...over } })).at(-1);
    const found = "2026-11-28T11:00:00.000Z, 1 h ago: the store went back 4.2 s; 731 runs and 12 results were put back";
    expect(of({})).toMatchObject({ what: "recovery", verdict: "remark", found });
    expect(of({ missing: ["atlas", "titan"] })).toMatchObject({
      verdict: "remark",
      found: `${found}; atlas, titan did not come: what they did last is not known, and 7 runs at most may have run twice`,
      advice: expect.stringContaining("in the last seconds before 2026-11-28T11:00:00.000Z"),
    });
    expect(of({ backMs: null })?.found).toContain("by how much the store went back is not known");
    expect(of({ backMs: 0 })?.found).toContain("the store went back by less than a beat");
    expect(of({ endedMs: nowMs - 8 * 86_400_000 }), "history").toMatchObject({ verdict: "good" });
    expect(of({ endedMs: null })).toMatchObject({
      verdict: "problem",
      found: expect.stringContaining("under way since"),
    });
  });

  it("does not trust a silent leader", () => {
    expect(wrong({ members: [member({ seenMs: nowMs - 20_000 })] })).toEqual({
      leader: "problem: atlas holds term 7, but is silent since 20 s",
      members: "remark: 0 live, 1 silent: atlas, seen 20 s ago",
      workers: "problem: no live worker for group default: heartbeat",
    });
  });

  it("reports a group without workers, but not for a paused task", () => {
    const tasks = [task("heartbeat"), task("render", "gpu"), task("train", "gpu", true)];
    expect(wrong({ tasks })).toEqual({ workers: "problem: no live worker for group gpu: render" });
    expect(
      wrong({ tasks, members: [member(), member({ sessionId: 2, node: "titan", role: "worker", groups: ["gpu"] })] }),
    ).toEqual({});
  });

  it("reports a task whose handler no remote worker of its group lists", () => {
    const remote = (sessionId: number, tasks: string[] | null) =>
      member({ sessionId, node: `r${sessionId}`, role: "worker", groups: ["gpu"], tasks });
    const tasks = [task("heartbeat"), task("render", "gpu"), task("train", "gpu"), task("idle", "gpu", true)];
    expect(wrong({ tasks, members: [member(), remote(2, ["train"]), remote(3, [])] })).toEqual({
      workers: "problem: no live worker of its group has a handler for render",
    });
    expect(wrong({ tasks, members: [member(), remote(2, ["train"]), remote(3, ["render"])] })).toEqual({});
    expect(wrong({ tasks, members: [member(), remote(2, ["train"]), remote(3, null)] })).toEqual({});
  });

  it("reports which time zone rules are used for planning, and which tasks were planned by older rules", () => {
    const of = (facts: Partial<ClusterFacts>) =>
      checkCluster(healthy(facts)).find(({ what }) => what === "time zones") as Check;
    expect(of({})).toMatchObject({ verdict: "good", found: "no task uses another than UTC" });
    expect(of({ zones: { count: 3, newest: "2026e" } })).toMatchObject({
      verdict: "good",
      found: "the rules of 3 are in the store, the newest of version 2026e of the time zone database",
    });
    expect(of({ zones: { count: 1, newest: null } }).found).toBe("the rules of 1 are in the store");
    expect(of({ zones: { count: 1, newest: "2026e" }, zonesBehind: ["a", "b"] })).toMatchObject({
      verdict: "remark",
      found: "a, b: planned by rules from before a change of their zone",
    });
  });

  it("reports overdue and stuck runs, unplanned slots and mixed versions", () => {
    expect(
      wrong({
        overdue: [{ task: "heartbeat", group: "default", count: 7, oldestDueMs: nowMs - 95_000 }],
        fullGroups: [{ group: "gpu", limit: 4, waiting: 12, oldestDueMs: nowMs - 20_000 }],
        stuck: [{ runId: 42, task: "heartbeat", node: null, claimedMs: 0, why: "past its timeout" }],
        unplanned: ["a", "b", "c", "d"].map((name) => ({ task: name, slotMs: nowMs - 5_000 })),
        members: [member(), member({ sessionId: 2, node: "maria", version: "0.2.0" })],
      }),
    ).toEqual({
      "overdue runs": "problem: 7 of heartbeat, the oldest due 1 min 35 s ago",
      "group limits": "remark: gpu is at its limit of 4, 12 wait, the oldest due 20 s ago",
      "stuck runs": "problem: run 42 of heartbeat on a lost node: past its timeout",
      "unplanned slots": "problem: a, due 5.0 s ago, b, due 5.0 s ago, c, due 5.0 s ago and 1 more",
      versions: "remark: members run 0.1.0 and 0.2.0",
    });
  });

  it("reports by how much cluster time went back, and until when nothing fires", () => {
    expect(wrong({ timeBack: { reachedMs: nowMs + 86_400_000, sinceMs: nowMs - 1_000, replanned: false } })).toEqual({
      "cluster time": `problem: it is 24 h behind what it has been since ${new Date(nowMs - 1_000).toISOString()}: nothing that was planned by then fires before ${new Date(nowMs + 86_400_000).toISOString()}`,
    });
  });

  it("does not report a missing planner while a leader exists", () => {
    const unplanned = [{ task: "a", slotMs: nowMs - 5_000 }];
    const advice = (facts: Parameters<typeof healthy>[0]) =>
      checkCluster(healthy({ unplanned, ...facts })).find(({ what }) => what === "unplanned slots")?.advice;
    expect(advice({})).toMatch(/^\S+ leads, and does not plan them: its log has why\./);
    expect(advice({ leadership: { term: 7, sessionId: null } })).toMatch(/^No scheduler plans\./);
  });

  it.each([
    [["1.4.0+aa"], undefined],
    [["1.4.0+aa", "1.4.0+bb"], undefined],
    [["1.4.0+aa", "1.5.0+aa"], "remark: members are of 1.4.0+aa, 1.5.0+aa"],
  ])("reports members of several releases, but not several programs of one release: %j", (names, said) => {
    const settings = { retentionMs: 1, horizonMs: 1, claimAheadMs: 1 };
    const members = names.map((release, at) =>
      member({ sessionId: at + 1, node: `n${at}`, settings: { ...settings, release } }),
    );
    expect(wrong({ members }).releases).toBe(said);
  });
});
