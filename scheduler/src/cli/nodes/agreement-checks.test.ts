import { describe, expect, it } from "vitest";
import { CarillonError } from "../../base/errors.ts";
import type { Member } from "../../cluster/session-store.ts";
import type { ClusterFacts } from "../../store/postgres/runs/inspect.ts";
import { type CoordinationLook, checkAgreement } from "./agreement-checks.ts";

const nowMs = Date.parse("2026-11-28T12:00:00Z");
const settings = { retentionMs: 30 * 86_400_000, horizonMs: 15_000, claimAheadMs: 1_000 };
const member = (sessionId: number, node: string, over: Partial<Member> = {}): Member => ({
  node,
  role: "node",
  host: "vm",
  pid: 1,
  version: "0.1.0",
  timeoutMs: 6_000,
  groups: ["default"],
  settings,
  sessionId,
  beat: 9,
  witnessed: false,
  startedMs: nowMs - 60_000,
  seenMs: nowMs - 1_000,
  stillMs: null,
  ...over,
});
const facts = (over: Partial<ClusterFacts> = {}): ClusterFacts => ({
  nowMs,
  members: [member(1, "atlas"), member(2, "maria")],
  leadership: { term: 7, sessionId: 1 },
  tasks: [],
  partitions: [],
  maker: { role: "app", owner: "app", may: true },
  rightsLacking: [],
  overdue: [],
  fullGroups: [],
  stuck: [],
  unplanned: [],
  recovery: undefined,
  timeBack: undefined,
  clusterId: "mine",
  coordination: "store",
  sharedNames: [],
  sharedAddresses: [],
  zones: { count: 0, newest: null },
  zonesBehind: [],
  ...over,
});
const wrong = (over: Partial<ClusterFacts>, look?: CoordinationLook) =>
  checkAgreement(facts(over), look)
    .filter(({ verdict }) => verdict !== "good")
    .map(({ what, verdict, found, advice }) => {
      expect(advice).not.toBe("");
      return `${verdict}: ${what}: ${found}`;
    });
const at = (serviceId: string, clusterId = "mine"): CoordinationLook => ({
  place: "ZooKeeper at zk:2181/a",
  openToAll: false,
  found: { clusterId, serviceId },
});
const witnessed = [member(1, "atlas", { witnessed: true }), member(2, "maria", { witnessed: true })];

describe("doctor's checks that all members agree", () => {
  it("find nothing wrong if the members agree", () => {
    expect(wrong({})).toEqual([]);
    expect(wrong({ members: [], coordination: null })).toEqual([]);
    expect(wrong({ members: witnessed, coordination: "s1" })).toEqual([]);
    expect(wrong({ members: witnessed, coordination: "s1" }, at("s1"))).toEqual([]);
  });

  it("remark on a coordination service without a password", () => {
    expect(wrong({ members: witnessed, coordination: "s1" }, { ...at("s1"), openToAll: true })).toEqual([
      "remark: coordination: ZooKeeper at zk:2181/a asks for no password: whoever reaches it can have healthy processes taken for dead",
    ]);
  });

  it("distinguish a different service, another cluster's service and an unreachable one", () => {
    expect(wrong({}, at("s1"))).toEqual([
      "problem: coordination: COORDINATION_DIFFERS: the cluster coordinates by the store alone, and this machine would by ZooKeeper at zk:2181/a",
    ]);
    const nothing: CoordinationLook = { place: "ZooKeeper at zk:2181/a", openToAll: false, found: undefined };
    for (const look of [at("s2"), nothing])
      expect(wrong({ members: witnessed, coordination: "s1" }, look)).toEqual([
        expect.stringContaining("COORDINATION_DIFFERS: the cluster coordinates by service s1"),
      ]);
    expect(wrong({ members: [] }, at("s1")), "nobody is in the way of a change").toEqual([
      expect.stringMatching(/^remark: coordination: /),
    ]);
    expect(wrong({ coordination: "s1", members: witnessed }, at("s1", "theirs"))).toEqual([
      "problem: coordination: COORDINATION_FOREIGN: ZooKeeper at zk:2181/a belongs to another cluster, theirs",
    ]);
    const error = new CarillonError("COORDINATION_UNREACHABLE", "no answer", { hint: "Check it." });
    expect(wrong({}, { place: "", error })).toEqual(["problem: coordination: COORDINATION_UNREACHABLE: no answer"]);
  });

  it("name members that do not reach the service", () => {
    expect(wrong({ members: [witnessed[0] as Member, member(2, "maria")], coordination: "s1" }, at("s1"))).toEqual([
      "remark: coordination: by ZooKeeper at zk:2181/a, but of 2 live members 1 rely on the store: maria",
    ]);
  });

  it("name two processes that use the same node name", () => {
    expect(wrong({ sharedNames: [{ node: "twin", processes: ["pid 1 on a", "pid 2 on b"] }] })).toEqual([
      "problem: names: two processes take turns under one name: twin: pid 1 on a and pid 2 on b",
    ]);
  });

  it("compare the settings of the live members", () => {
    const short = { settings: { ...settings, retentionMs: 86_400_000 } };
    expect(wrong({ members: [member(1, "atlas"), member(2, "maria", short)] })).toEqual([
      "problem: settings: SETTINGS_DIFFER: retention is 30d on atlas and 1d on maria",
    ]);
    expect(wrong({ members: [member(1, "atlas"), member(2, "maria", { ...short, seenMs: nowMs - 20_000 })] })).toEqual(
      [],
    );
    expect(wrong({ members: [member(1, "atlas"), member(2, "maria", { timeoutMs: 60_000 })] })).toHaveLength(1);
    expect(
      wrong({
        members: [
          member(1, "atlas", { settings: { ...settings, horizonMs: 12_000 } }),
          member(2, "maria", { timeoutMs: 60_000, settings: { ...settings, horizonMs: 150_000 } }),
        ],
      }),
    ).toEqual([expect.stringMatching(/^remark: settings: atlas plans 12s ahead .* maria's is 1m: /)]);
  });
});
