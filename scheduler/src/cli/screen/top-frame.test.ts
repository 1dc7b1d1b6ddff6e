import { describe, expect, it } from "vitest";
import type { Member } from "../../cluster/session-store.ts";
import type { RunRecord } from "../../run/run-record.ts";
import { zoneOf } from "../../schedule/zone.ts";
import { noCounters } from "../../task/task-record.ts";
import type { ListedTask } from "../nodes/cluster.ts";
import { styleOf, uncoloured } from "./style.ts";
import { styledWidth } from "./styled-text.ts";
import { type TopView, topLines } from "./top-frame.ts";
import { latenessOf, type TopState, taskRows, troublesOf } from "./top-state.ts";

const now = Date.parse("2030-01-03T09:12:44Z");
const run = (runId: number, given: Partial<RunRecord>): RunRecord => ({
  runId,
  task: "settle",
  taskId: 1,
  version: 1,
  state: "claimed",
  source: "slot",
  priority: 5,
  key: null,
  slotMs: null,
  dueMs: now - 1_000,
  createdMs: now - 2_000,
  claimedMs: null,
  startedMs: null,
  endedMs: null,
  attempt: 1,
  fence: 1,
  node: "atlas",
  payload: null,
  progress: null,
  result: null,
  error: null,
  ...given,
});
const task = (name: string, given: Partial<ListedTask> = {}): ListedTask => ({
  name,
  version: 1,
  group: "default",
  owner: null,
  of: null,
  schedules: 0,
  schedule: { type: "manual" },
  route: null,
  labels: {},
  limit: null,
  rate: null,
  words: "only when asked",
  next: null,
  paused: null,
  edited: [],
  counters: noCounters,
  ...given,
});
const member = (node: string, given: Partial<Member> = {}): Member => ({
  sessionId: 1,
  node,
  role: "node",
  host: "a.example",
  pid: 7,
  version: "1",
  timeoutMs: 6_000,
  groups: ["default"],
  labels: {},
  capacity: 10,
  settings: null,
  beat: 1,
  witnessed: false,
  startedMs: 0,
  seenMs: now - 500,
  stillMs: null,
  ...given,
});
const well: TopState = {
  place: "PostgreSQL at db.example:5432/app",
  nowMs: now,
  overdue: [],
  letters: 0,
  failing: [],
  tasks: [
    task("settle", { next: "2030-01-03T10:00:00.000Z", counters: { ...noCounters, succeeded: 41, failed: 2 } }),
    task("beat", { next: "2030-01-03T09:12:46.000Z", counters: { ...noCounters, succeeded: 9_000 } }),
    task("closed", { paused: { at: "2030-01-01T00:00:00.000Z", by: "ann", why: "", until: null } }),
  ],
  running: [run(7, { startedMs: now - 65_000, dueMs: now - 65_003 })],
  ended: [
    run(6, { task: "beat", state: "succeeded", dueMs: now - 2_000, startedMs: now - 1_996, endedMs: now - 1_990 }),
  ],
  members: [member("atlas"), member("borea", { sessionId: 2, groups: [] })],
  leader: { term: 7, node: "atlas", sessionId: 1, electedMs: now - 7_200_000, endedMs: null, endedWhy: null },
};
const view: TopView = {
  width: 100,
  height: 30,
  style: uncoloured,
  zone: zoneOf("UTC"),
  sort: "n",
  paused: false,
  from: 0,
  nowMs: now,
  everyMs: 2_000,
  away: null,
};
const shown = (state: TopState, given: Partial<TopView> = {}) => topLines(state, { ...view, ...given }).join("\n");
const ill: TopState = {
  ...well,
  leader: null,
  overdue: [run(8, { task: "\u001b[2Jorder", state: "ready", dueMs: now - 90_000, node: null })],
  letters: 12,
  failing: [{ reason: "BankError: no route to bank", letters: 12, tasks: ["settle"], lastMs: now - 5_000 }],
  members: [member("atlas", { seenMs: now - 60_000 })],
};

describe("the frame of carillon top", () => {
  it("shows that all is on time, the leader, start delays, the next slots and running runs", () => {
    const text = shown(well);
    expect(text).toMatch(/^carillon top {2}PostgreSQL at db\.example:5432\/app +09:12:44$/m);
    expect(text).toMatch(/^● on time$/m);
    expect(text).toMatch(
      /^late p50 4 ms {2}p99 4 ms {2}max 4 ms {3}running 1 {3}overdue 0 {3}1 ended in a minute {3}0 failed$/m,
    );
    expect(text).toMatch(/^atlas leads, term 7, for 2 h {3}nodes 2 {3}workers 1 {3}tasks 3$/m);
    expect(text).toMatch(/^beat +in 2\.0 s +09:12:46 +4 ms +9000 +✓ succeeded$/m);
    expect(text).toMatch(/^settle +in 47 min +10:00:00 +1 +1 min 5 s|settle +in 47 min +10:00:00 +1 .*41 +2$/m);
    expect(text).toMatch(/^closed +– .*paused$/m);
    expect(text).toMatch(/^running +settle +7 +1 min 5 s +atlas$/m);
    expect(text).toMatch(/^atlas +leads +1\/10 +default +a\.example +live$/m);
    expect(text.indexOf("beat")).toBeLessThan(text.indexOf("settle  "));
  });

  it("shows the worst problem first, and escapes control characters in foreign text", () => {
    const text = shown(ill);
    expect(text).toMatch(/^● nobody leads; 1 overdue, the oldest by 2 min; 1 silent$/m);
    expect(text).toMatch(/^overdue +␛\[2Jorder +8 +1 min 30 s$/m);
    expect(text).toMatch(/^ +12 +5\.0 s ago +settle +BankError: no route to bank$/m);
    expect(text).toMatch(/silent for 1 min$/m);
    expect(text).not.toContain("\u001b");
    expect(troublesOf({ ...well, members: [] }).map(({ text: one }) => one)).toEqual(["no worker"]);
    const late = [run(1, { state: "succeeded", dueMs: now - 9_000, startedMs: now - 4_000, endedMs: now })];
    expect(shown({ ...well, ended: late })).toMatch(/^● runs start late, up to 5 s$/m);
  });

  it("shows since when the cluster has been unreachable, beside the last known state", () => {
    const text = shown(well, { away: { sinceMs: now - 4_000, why: "no answer from https://a" } });
    expect(text).toMatch(/^cannot be asked since 09:12:40, trying again: no answer from https:\/\/a$/m);
    expect(text).toContain("settle");
  });

  it("fits every terminal size, with and without colours", () => {
    const many = Array.from({ length: 300 }, (_, n) =>
      task(`task-${n}-with-a-rather-long-name`, { next: "2030-01-04T00:00:00.000Z" }),
    );
    for (const state of [well, ill, { ...ill, tasks: many }, { ...well, tasks: [], members: [] }])
      for (const width of [20, 40, 60, 80, 129, 130, 200, 300])
        for (const height of [1, 2, 5, 8, 12, 24, 60])
          for (const style of [uncoloured, styleOf(true)]) {
            const lines = topLines(state, { ...view, width, height, style });
            expect(lines.length).toBeLessThanOrEqual(height);
            for (const line of lines)
              expect([width, height, line, styledWidth(line) <= width]).toEqual([width, height, line, true]);
            if (height >= 8) expect(lines.at(-1)).toContain("q quit");
          }
  });

  it("places its parts side by side on a wide terminal", () => {
    expect(shown(ill, { width: 160 })).toMatch(/^TASK .*NEXT ▾.*RUNS +TASK/m);
    expect(shown(ill, { width: 100 })).not.toMatch(/NEXT ▾.*RUNS +TASK/);
  });

  it("sorts by the chosen key, scrolls, and shows that it is paused", () => {
    const names = (sort: TopView["sort"]) => taskRows(well, sort).map(({ name }) => name);
    expect([names("n"), names("f"), names("r"), names("l"), names("a")]).toEqual([
      ["beat", "settle", "closed"],
      ["settle", "beat", "closed"],
      ["settle", "beat", "closed"],
      ["beat", "settle", "closed"],
      ["beat", "closed", "settle"],
    ]);
    expect(shown(well, { from: 1 })).not.toMatch(/^beat/m);
    expect(shown(well, { paused: true })).toMatch(/paused {2}09:12:44$/m);
    expect(shown(well, { sort: "f", paused: true })).toMatch(/p go on .*\[f failed\]/);
  });

  it("measures the delay of first attempts only", () => {
    expect(latenessOf([run(1, { attempt: 2, startedMs: now }), run(2, {})])).toBeNull();
    expect(latenessOf([run(1, { startedMs: now }), run(2, { startedMs: now - 990 })])).toEqual({
      count: 2,
      p50: 1_000,
      p99: 1_000,
      max: 1_000,
    });
  });
});
