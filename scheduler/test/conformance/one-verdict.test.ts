import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { GivenRun, PollAnswer } from "../../src/api/worker-protocol.ts";
import { limits } from "../../src/base/limits.ts";
import { RemoteStage, said } from "../support/remote-stage.ts";

/** Tests that a claim ends once: only the first verdict on it counts, from the same poll, another poll, or another server. */

const stage = new RemoteStage();
let key = "";
let session = 0;

beforeAll(async () => {
  await stage.serve();
  await stage.serve();
  key = await stage.key("mine");
  for (const name of ["plain", "link", "publish", "before"]) await stage.task(name);
  await stage.task("again", { retry: { attempts: 9, delay: 0 } });
  await stage.task("follower", { after: "before" });
  session = await stage.join(key, { tasks: ["plain", "link", "before", "again"] });
});
afterAll(() => stage.close());

const claimOf = ({ runId, fence }: GivenRun) => ({ runId, fence });
const codes = ({ refused }: PollAnswer) => refused.map(({ part, code }) => `${part} ${code}`);
const recordOf = (runId: number) => stage.store.runs.find(runId);
const late = (runId: number) =>
  stage.rows<{ outcome: number; error: unknown }>(
    "select outcome, error from $s.late_result where run_id = $1 order by outcome, error::text",
    [runId],
  );
/** Returns the tasks and payloads of the runs that the end of this run has started, and of the joins that wait. */
const begunBy = async (runId: number) => [
  ...(await stage.rows(
    `select t.name as task, r.payload from $s.run r join $s.task t on t.id = r.task_id where r.parent_id = $1 and r.inputs is not null
       or r.parent_id = $1 and t.name in ('publish', 'follower')`,
    [runId],
  )),
  ...(await stage.rows(
    "select t.name as task, g.payload from $s.gathering g join $s.task t on t.id = g.task_id where g.parent_id = $1",
    [runId],
  )),
];
const on = (payload: unknown) => ({ outcome: "succeeded", onward: { continueAs: { payload } } });
const joined = { outcome: "succeeded", onward: { join: "publish", payload: { to: "all" } } };
const succeeded = { outcome: "succeeded" };
const failed = (message: string) => ({ outcome: "failed", error: { message } });

/** Deletes the runs and joins that a test case left, so that the next case claims only its own runs. */
async function clear(): Promise<void> {
  await stage.rows("delete from $s.run");
  await stage.rows("delete from $s.gathering");
}

interface Case {
  name: string;
  task: string;
  first: object;
  other: object;
  state: string;
  begun: object[];
  lateOutcomes: number[];
}

const cases: Case[] = [
  {
    name: "the same chain",
    task: "link",
    first: on(1),
    other: on(1),
    state: "succeeded",
    begun: [{ task: "link", payload: 1 }],
    lateOutcomes: [0],
  },
  {
    name: "a chain, then a join",
    task: "link",
    first: on(1),
    other: joined,
    state: "succeeded",
    begun: [{ task: "link", payload: 1 }],
    lateOutcomes: [0],
  },
  {
    name: "a join, then a chain",
    task: "link",
    first: joined,
    other: on(1),
    state: "succeeded",
    begun: [{ task: "publish", payload: { to: "all" } }],
    lateOutcomes: [0],
  },
  {
    name: "the same join",
    task: "link",
    first: joined,
    other: joined,
    state: "succeeded",
    begun: [{ task: "publish", payload: { to: "all" } }],
    lateOutcomes: [0],
  },
  {
    name: "a plain success, then a chain",
    task: "link",
    first: succeeded,
    other: on(1),
    state: "succeeded",
    begun: [],
    lateOutcomes: [0],
  },
  {
    name: "a chain, then a plain success",
    task: "link",
    first: on(1),
    other: succeeded,
    state: "succeeded",
    begun: [{ task: "link", payload: 1 }],
    lateOutcomes: [0],
  },
  {
    name: "a success before another task",
    task: "before",
    first: succeeded,
    other: succeeded,
    state: "succeeded",
    begun: [{ task: "follower", payload: null }],
    lateOutcomes: [0],
  },
  {
    name: "a success, then a failure with retries left",
    task: "again",
    first: succeeded,
    other: failed("no"),
    state: "succeeded",
    begun: [],
    lateOutcomes: [1],
  },
  {
    name: "a failure with retries left, then a success",
    task: "again",
    first: failed("no"),
    other: succeeded,
    state: "ready",
    begun: [],
    lateOutcomes: [0],
  },
  {
    name: "two failures with retries left",
    task: "again",
    first: failed("no"),
    other: failed("nor"),
    state: "ready",
    begun: [],
    lateOutcomes: [1],
  },
  {
    name: "two failures of the last attempt",
    task: "plain",
    first: failed("no"),
    other: failed("nor"),
    state: "failed",
    begun: [],
    lateOutcomes: [1],
  },
  {
    name: "a failure, then a success",
    task: "plain",
    first: failed("no"),
    other: succeeded,
    state: "failed",
    begun: [],
    lateOutcomes: [0],
  },
  {
    name: "two results",
    task: "plain",
    first: { ...succeeded, result: 1 },
    other: { ...succeeded, result: 2 },
    state: "succeeded",
    begun: [],
    lateOutcomes: [0],
  },
  {
    name: "a release, then a success",
    task: "plain",
    first: { outcome: "released" },
    other: succeeded,
    state: "ready",
    begun: [],
    lateOutcomes: [0],
  },
  {
    name: "a success, then a release",
    task: "plain",
    first: succeeded,
    other: { outcome: "released" },
    state: "succeeded",
    begun: [],
    lateOutcomes: [],
  },
];

describe("two verdicts on one claim", () => {
  test.each(cases)("in one poll: $name", async ({ task, first, other, state, begun, lateOutcomes }) => {
    const innocent = await stage.claimed(key, session, "plain");
    const run = await stage.claimed(key, session, task);
    const verdicts = [said(run, first), said(innocent), said(run, other)];
    for (const server of [stage.server, stage.second]) {
      const answer = await stage.poll(key, { session, verdicts }, server);
      expect(answer.refused).toMatchObject([{ ...claimOf(run), part: "verdict", status: 409, code: "FENCE_STALE" }]);
      expect(answer.refused[0]?.message).toMatch(/the first verdict counts/);
      expect((await recordOf(innocent.runId)).state).toBe("succeeded");
      expect((await recordOf(run.runId)).state).toBe(state);
      expect(await begunBy(run.runId)).toEqual(begun);
      expect((await late(run.runId)).map(({ outcome }) => outcome)).toEqual(lateOutcomes);
    }
    await clear();
  });

  test.each(cases)("in two polls, one after the other: $name", async ({ task, first, other, state, begun }) => {
    const run = await stage.claimed(key, session, task);
    const polls = [
      [stage.server, first],
      [stage.second, first],
      [stage.second, other],
      [stage.server, other],
    ] as const;
    const isSame = JSON.stringify(first) === JSON.stringify(other);
    for (const [at, [server, verdict]] of polls.entries()) {
      const answer = await stage.poll(key, { session, verdicts: [said(run, verdict)] }, server);
      expect(codes(answer), `poll ${at}`).toEqual(at < 2 || isSame ? [] : ["verdict FENCE_STALE"]);
    }
    expect((await recordOf(run.runId)).state).toBe(state);
    expect(await begunBy(run.runId)).toEqual(begun);
    await clear();
  });

  test("of a run with a key", async () => {
    await stage.server.enqueue("link", null, { key: "reader" });
    const { runs } = await stage.poll(key, { session, want: 1, waitMs: limits.pollWaitMs });
    const [run] = runs as [GivenRun];
    const answer = await stage.poll(key, { session, verdicts: [said(run, on(1)), said(run, on(2)), said(run, on(1))] });
    expect(codes(answer)).toEqual(["verdict FENCE_STALE", "verdict FENCE_STALE"]);
    expect(await begunBy(run.runId)).toEqual([{ task: "link", payload: 1 }]);
    expect(await late(run.runId), "the same is recorded once").toHaveLength(1);
    await clear();
  });

  const cancelled: [string, object, object[]][] = [
    ["a chain", on(1), [on(2), joined, succeeded]],
    ["a chain without a payload", { outcome: "succeeded", onward: { continueAs: {} } }, [on(null), succeeded]],
    ["a join", joined, [{ outcome: "succeeded", onward: { join: "publish" } }, on(1), succeeded]],
    ["a plain success", succeeded, [on(1), joined]],
    ["a failure", failed("no"), [succeeded, failed("nor")]],
    ["a release", { outcome: "released" }, [succeeded]],
    ["a confirmation", { outcome: "cancelled" }, [succeeded, on(1)]],
  ];
  test.each(cancelled)(
    "of a run that is being cancelled: repeating %s gets the same answer, another verdict is refused",
    async (_name, word, others) => {
      const run = await stage.claimed(key, session, "link");
      expect(await stage.store.runs.cancel(run.runId, "enough", Date.now())).toBe("asked");
      const say = async (verdict: object, server = stage.server) =>
        codes(await stage.poll(key, { session, verdicts: [said(run, verdict)] }, server));
      for (const server of [stage.server, stage.server, stage.second, stage.second])
        expect(await say(word, server)).toEqual([]);
      expect(await begunBy(run.runId)).toEqual([]);
      expect(await late(run.runId)).toEqual([]);
      for (const other of others)
        for (const server of [stage.server, stage.second])
          expect(await say(other, server)).toEqual(["verdict FENCE_STALE"]);
      expect(await say(word, stage.second)).toEqual([]);
      await clear();
    },
  );

  const pairs: [string, string, object, object][] = [
    ["a success and a failure", "again", succeeded, failed("no")],
    ["a chain and a join", "link", on(1), joined],
    ["a chain and a plain success", "link", on(1), succeeded],
    ["two chains", "link", on(1), on(2)],
    ["two results", "plain", { ...succeeded, result: 1 }, { ...succeeded, result: 2 }],
    ["a failure and a release", "again", failed("no"), { outcome: "released" }],
  ];
  const places = [
    ["one server", () => [stage.server, stage.server]],
    ["two servers", () => [stage.server, stage.second]],
  ] as const;

  describe.each(places)("in two concurrent polls, at %s", (_place, serversOf) => {
    test.each(pairs)("%s: one is applied, the other is refused", async (_name, task, one, other) => {
      for (let i = 0; i < 4; i++) {
        const run = await stage.claimed(key, session, task);
        const innocents = [await stage.claimed(key, session, "plain"), await stage.claimed(key, session, "plain")];
        const words = i % 2 === 0 ? [one, other] : [other, one];
        const answers = await Promise.all(
          serversOf().map((server, at) =>
            stage.poll(
              key,
              { session, verdicts: [said(innocents[at] as GivenRun), said(run, words[at] as object)] },
              server,
            ),
          ),
        );
        expect(answers.flatMap(codes)).toEqual(["verdict FENCE_STALE"]);
        const won = words[answers.findIndex(({ refused }) => refused.length === 0)] as typeof succeeded & {
          result?: number;
          onward?: { continueAs?: { payload: number } };
        };
        const { state, result } = await recordOf(run.runId);
        expect([state, result]).toEqual([won.outcome === "succeeded" ? "succeeded" : "ready", won.result ?? null]);
        const next = won.onward?.continueAs;
        expect(await begunBy(run.runId)).toEqual(
          next ? [{ task: "link", ...next }] : won.onward ? [{ task: "publish", payload: { to: "all" } }] : [],
        );
        expect((await late(run.runId)).length).toBe(words.some((word) => word !== won && !isRelease(word)) ? 1 : 0);
        for (const { runId } of innocents) expect((await recordOf(runId)).state).toBe("succeeded");
        await clear();
      }
    });

    test.each([
      ["link", on(1)],
      ["link", joined],
      ["before", succeeded],
      ["plain", { ...succeeded, result: { n: [1, "two", null] } }],
      ["plain", failed("no")],
      ["again", failed("no")],
      ["again", { outcome: "released" }],
    ])("a repetition of %s is refused in neither poll and applied once: %j", async (task, word) => {
      const run = await stage.claimed(key, session, task);
      const poll = { session, verdicts: [said(run, word)] };
      const answers = await Promise.all(serversOf().map((server) => stage.poll(key, poll, server)));
      expect(answers.flatMap(codes)).toEqual([]);
      expect(await late(run.runId)).toEqual([]);
      expect((await begunBy(run.runId)).length).toBe(task === "link" || task === "before" ? 1 : 0);
      await clear();
    });
  });
});

const isRelease = (word: object) => "outcome" in word && word.outcome === "released";

describe("duplicate messages about one claim in one poll", () => {
  test("states, reports and spans: the first is applied, the others are refused", async () => {
    const run = await stage.claimed(key, session, "again");
    const claim = claimOf(run);
    const span = (digit: string) => ({ ...claim, context: `00-${digit.repeat(32)}-${digit.repeat(16)}-01` });
    const answer = await stage.poll(key, {
      session,
      states: [
        { ...claim, state: "first" },
        { ...claim, state: "second" },
      ],
      reports: [
        { ...claim, startedAgoMs: 0, progress: "first" },
        { ...claim, startedAgoMs: 0, progress: "second" },
      ],
      spans: [span("1"), span("2")],
      logs: [
        { ...claim, message: "first", agoMs: 2 },
        { ...claim, message: "second", agoMs: 1 },
      ],
      holds: [run.fence, run.fence, 999_999, 999_999],
    });
    expect(codes(answer).sort()).toEqual(["report REQUEST_INVALID", "span REQUEST_INVALID", "state REQUEST_INVALID"]);
    expect(answer.lost).toEqual([999_999]);
    expect(await stage.rows("select checkpoint, progress from $s.run where id = $1", [run.runId])).toEqual([
      { checkpoint: "first", progress: "first" },
    ]);
    expect(await stage.rows("select context from $s.run_span where run_id = $1", [run.runId])).toEqual([
      { context: span("1").context },
    ]);
    const lines = await stage.store.runs.logs(run.runId, 9);
    expect(lines.map(({ message }) => message)).toEqual(["first", "second"]);
    // If one of the states is refused, a verdict in the same poll is refused too, and so is a later verdict on the claim.
    const beside = await stage.poll(key, {
      session,
      states: [
        { ...claim, state: "third" },
        { ...claim, state: "fourth" },
      ],
      verdicts: [said(run), said(run, failed("no"))],
    });
    expect(codes(beside)).toEqual(["state REQUEST_INVALID", "verdict REQUEST_INVALID", "verdict REQUEST_INVALID"]);
    expect((await recordOf(run.runId)).state).toBe("claimed");
    await clear();
  });

  test("messages about an ended claim are refused, except for log lines", async () => {
    const run = await stage.claimed(key, session, "plain");
    const claim = claimOf(run);
    // The second server has cached the claim and does not see it end.
    await stage.poll(key, { session, holds: [run.fence] }, stage.second);
    await stage.poll(key, { session, verdicts: [said(run)] });
    for (const server of [stage.server, stage.second]) {
      const answer = await stage.poll(
        key,
        {
          session,
          states: [{ ...claim, state: 1 }],
          reports: [{ ...claim, startedAgoMs: 0 }],
          spans: [{ ...claim, context: `00-${"1".repeat(32)}-${"1".repeat(16)}-01` }],
          logs: [{ ...claim, message: "after" }],
        },
        server,
      );
      expect(codes(answer).sort()).toEqual(["report FENCE_STALE", "span FENCE_STALE", "state FENCE_STALE"]);
    }
    expect(await stage.store.runs.logs(run.runId, 9)).toMatchObject([{ message: "after" }, { message: "after" }]);
  });
});

test("two failures in one millisecond: the first is applied, and only that one may be repeated", async () => {
  const run = await stage.claimed(key, session, "plain");
  const { taskId } = await stage.store.tasks.byName("plain");
  const endedMs = Date.now();
  const claim = { ...claimOf(run), sessionId: session, attempt: 1, taskId, linked: false, startedMs: null, endedMs };
  const settle = (message: string) => {
    const verdict = { kind: "ended", outcome: "failed", result: null, error: JSON.stringify({ message }) } as const;
    return stage.store.claims.settle(session, [{ ...claim, verdict }], endedMs);
  };
  expect(await settle("no")).toEqual(new Set());
  expect(await settle("nor")).toEqual(new Set([run.fence]));
  expect(await settle("no")).toEqual(new Set());
  await clear();
});

test("a log line of a claim without any stored trace is refused, not silently dropped", async () => {
  const run = await stage.claimed(key, session, "plain");
  await stage.poll(key, { session, verdicts: [said(run, { outcome: "released" })] });
  // The same run is claimed again and has another fence.
  const again = await stage.poll(key, { session, want: 1, waitMs: limits.pollWaitMs });
  expect(again.runs.map(({ runId }) => runId)).toEqual([run.runId]);
  const logs = [
    { ...claimOf(run), message: "of the old claim" },
    { ...claimOf(again.runs[0] as GivenRun), message: "of the new one" },
    // No run with this id has a claim.
    { ...claimOf(run), runId: run.runId + 1_000_000, message: "of no claim" },
  ];
  expect(codes(await stage.poll(key, { session, logs }))).toEqual(["log RUN_UNKNOWN", "log FENCE_STALE"]);
  expect(await stage.store.runs.logs(run.runId, 9)).toMatchObject([{ message: "of the new one" }]);
  await clear();
});

/** Makes the store refuse writes to one run with an internal error. @returns a function that undoes this */
async function broken(table: "run" | "run_history", when: "insert" | "update of checkpoint", runId: number) {
  await stage.rows(
    `create function $s.broken() returns trigger language plpgsql as 'begin
       if new.id = ${runId} then raise exception ''out of order''; end if; return new; end'`,
  );
  await stage.rows(`create trigger broken before ${when} on $s.${table} for each row execute function $s.broken()`);
  return () => stage.rows(`drop function $s.broken() cascade`);
}

describe("a part of a poll that the store cannot write", () => {
  test("a verdict: the other verdicts are written, and this one as soon as the store can write it", async () => {
    const runs: GivenRun[] = [];
    for (const task of ["plain", "link", "plain", "again"]) runs.push(await stage.claimed(key, session, task));
    const [plain, link, faulty, again] = runs as [GivenRun, GivenRun, GivenRun, GivenRun];
    const mend = await broken("run_history", "insert", faulty.runId);
    const verdicts = [said(plain), said(link, on(1)), said(faulty), said(again, failed("no"))];
    const states = async () => Promise.all(runs.map(async ({ runId }) => (await recordOf(runId)).state));
    for (const server of [stage.server, stage.second]) {
      const { status } = await stage.post(key, { session, verdicts }, { server });
      expect(status).toBe(500);
      expect(await states()).toEqual(["succeeded", "succeeded", "claimed", "ready"]);
    }
    await mend();
    const answer = await stage.poll(key, { session, verdicts });
    expect(codes(answer)).toEqual([]);
    expect(await states()).toEqual(["succeeded", "succeeded", "succeeded", "ready"]);
    expect(await begunBy(link.runId)).toHaveLength(1);
    await clear();
  });

  test("a state: verdicts on other claims are written, but not the success sent with that state", async () => {
    const faulty = await stage.claimed(key, session, "plain");
    const other = await stage.claimed(key, session, "again");
    const mend = await broken("run", "update of checkpoint", faulty.runId);
    const poll = {
      session,
      states: [
        { ...claimOf(faulty), state: 1 },
        { ...claimOf(other), state: 2 },
      ],
      logs: [{ ...claimOf(faulty), message: "kept" }],
      verdicts: [said(faulty), said(other, failed("no"))],
    };
    expect((await stage.post(key, poll)).status).toBe(500);
    expect((await recordOf(faulty.runId)).state).toBe("claimed");
    expect((await recordOf(other.runId)).state).toBe("ready");
    expect(await stage.rows("select checkpoint from $s.run where id = $1", [other.runId])).toEqual([{ checkpoint: 2 }]);
    expect(await stage.store.runs.logs(faulty.runId, 9)).toMatchObject([{ message: "kept" }]);
    await mend();
    expect(codes(await stage.poll(key, { session, verdicts: [said(faulty)] }))).toEqual([]);
    expect((await recordOf(faulty.runId)).state).toBe("succeeded");
    await clear();
  });
});
