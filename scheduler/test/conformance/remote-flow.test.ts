import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { GivenRun, PollAnswer } from "../../src/api/worker-protocol.ts";
import { CarillonError, isCarillonError } from "../../src/base/errors.ts";
import { limits } from "../../src/base/limits.ts";
import { worker } from "../../src/library/remote-worker.ts";
import type { Handler } from "../../src/run/handler.ts";
import { sourceNumber } from "../../src/store/postgres/enqueue/sources.ts";
import { StoreProxy } from "../support/proxy.ts";
import { RemoteStage, said } from "../support/remote-stage.ts";
import { recordingLog, until } from "../support/store-stage.ts";

const stage = new RemoteStage();
let key = "";
let session = 0;

beforeAll(async () => {
  await stage.serve();
  await stage.serve();
  key = await stage.key("mine");
  for (const name of ["parent", "child", "publish"]) await stage.task(name);
  await stage.task("again", { retry: { attempts: 5, delay: 1_000, maxDelay: "1m" } });
  await stage.task("vaulted", { group: "vault" });
  session = await stage.join(key, { tasks: ["parent", "again"] });
});
afterAll(() => stage.close());

const second = () => stage.servers[1] as NonNullable<(typeof stage.servers)[1]>;
const recordOf = (runId: number) => stage.store.runs.find(runId);
const claimOf = ({ runId, fence }: GivenRun) => ({ runId, fence });
const countOf = async (task: string) => (await stage.store.runs.list({ task, limit: 10_000 })).length;
const one = (key: string, task = "child", payload?: unknown) => ({ task, key, payload });
const codes = ({ refused }: PollAnswer) => refused.map(({ part, code }) => `${part} ${code}`);

describe("with the bare protocol", () => {
  test("a state is kept by any server, for the next attempt, and null deletes it", async () => {
    const run = await stage.claimed(key, session, "again");
    const save = (state: unknown, server = stage.server) =>
      stage.poll(key, { session, states: [{ ...claimOf(run), state }] }, server);
    expect((await save({ page: 1 })).refused).toEqual([]);
    expect((await save({ page: 2 }, second())).refused).toEqual([]);
    expect(codes(await save("x".repeat(limits.payloadBytes)))).toEqual(["state PAYLOAD_TOO_LARGE"]);
    const failed = { outcome: "failed", error: { message: "half-way" } };
    await stage.poll(key, { session, verdicts: [said(run, failed)] });
    expect(codes(await save({ page: 0 }))).toEqual(["state FENCE_STALE"]);
    const { runs } = await stage.poll(key, { session, want: 1, waitMs: limits.pollWaitMs });
    expect(runs).toMatchObject([{ runId: run.runId, attempt: 2, state: { page: 2 } }]);
    const next = runs[0] as GivenRun;
    await stage.poll(key, { session, states: [{ ...claimOf(next), state: null }] });
    expect(await stage.rows("select checkpoint from $s.run where id = $1", [run.runId])).toEqual([
      { checkpoint: null },
    ]);
    const { status, body } = await stage.post(key, { session, states: [claimOf(next)] });
    expect([status, body.detail]).toEqual([400, expect.stringMatching(/state: is missing/)]);
    await stage.poll(key, { session, verdicts: [said(next)] });
  });

  test("children are made once per key, joined once, and listed in pages; repeating the verdict changes nothing", async () => {
    const run = await stage.claimed(key, session, "parent");
    const children = [one("a", "child", { n: 1 }), one("b"), one("a")];
    const spawns = [{ ...claimOf(run), children, join: "publish" }];
    const first = await stage.poll(key, { session, spawns });
    const made = first.spawned?.[0]?.children ?? [];
    expect(made.map(({ created }) => created)).toEqual([true, true, true]);
    expect(made[0]?.runId).toBe(made[2]?.runId);
    const again = await stage.poll(key, { session, spawns }, second());
    expect(again.spawned).toEqual([
      { ...claimOf(run), children: made.map(({ runId }) => ({ runId, created: false })) },
    ]);
    expect(await countOf("child")).toBe(2);

    const verdicts = [said(run, { outcome: "succeeded", onward: { join: "publish", payload: { to: "all" } } })];
    for (const server of [stage.server, second(), stage.server])
      expect((await stage.poll(key, { session, verdicts }, server)).refused).toEqual([]);
    const hand = await stage.join(key, { tasks: ["child", "publish"] });
    const { runs } = await stage.poll(key, { session: hand, want: 9, waitMs: limits.pollWaitMs });
    expect(runs.map(({ payload }) => payload)).toEqual([{ n: 1 }, null]);
    await stage.poll(key, {
      session: hand,
      verdicts: runs.map((child, n) => said(child, { outcome: n === 0 ? "succeeded" : "failed", result: { n } })),
    });
    const { runs: joins } = await stage.poll(key, { session: hand, want: 9, waitMs: limits.pollWaitMs });
    expect(joins).toMatchObject([{ task: "publish", payload: { to: "all" } }]);
    const joining = claimOf(joins[0] as GivenRun);
    const told = await stage.poll(key, { session: hand, inputsOf: joining }, second());
    expect(told.inputs).toMatchObject({
      ...joining,
      inputs: [
        { task: "child", key: "a", outcome: "succeeded", result: { n: 0 } },
        { task: "child", key: "b", outcome: "failed", result: null },
      ],
      more: false,
    });
    const after = told.inputs?.inputs[0]?.runId;
    const rest = await stage.poll(key, { session: hand, inputsOf: { ...joining, afterRunId: after } });
    expect(rest.inputs?.inputs.map((input) => input.key)).toEqual(["b"]);
    const page = (bytes: number, limit = 9) => stage.store.flow.inputsPage(joining, { afterRunId: 0, limit, bytes });
    expect(await page(1)).toMatchObject({ inputs: [{ key: "a" }], more: true });
    expect(await page(9_999, 1)).toMatchObject({ inputs: [{ key: "a" }], more: true });
    expect(await page(9_999, 2)).toMatchObject({ inputs: [{}, {}], more: false });
    await stage.poll(key, { session: hand, verdicts: [said(joins[0] as GivenRun)], leave: true });
    expect(await countOf("publish")).toBe(1);
  });

  test("children, one lost with its worker and one cancelled before its claim, are joined once", async () => {
    for (const name of ["piece", "sum"]) await stage.task(name, { grace: 0 });
    const run = await stage.claimed(key, session, "parent");
    const children = ["a", "b", "c"].map((name) => one(name, "piece"));
    const { spawned } = await stage.poll(key, { session, spawns: [{ ...claimOf(run), children, join: "sum" }] });
    await stage.poll(key, { session, verdicts: [said(run, { outcome: "succeeded", onward: { join: "sum" } })] });
    const dying = await stage.join(key, { tasks: ["piece"] });
    const { runs: lost } = await stage.poll(key, { session: dying, want: 1, waitMs: limits.pollWaitMs });
    const cancelled = spawned?.[0]?.children.find(({ runId }) => runId !== lost[0]?.runId)?.runId as number;
    expect(await stage.server.cancel(cancelled)).toBe("cancelled");
    await stage.store.sessions.end(dying, null, Date.now(), "silent");
    const hand = await stage.join(key, { tasks: ["piece", "sum"] });
    const came: GivenRun[] = [];
    await until("the join", async () => {
      const { runs } = await stage.poll(key, { session: hand, want: 9, waitMs: limits.pollWaitMs });
      came.push(...runs);
      await stage.poll(key, {
        session: hand,
        verdicts: runs.filter(({ task }) => task === "piece").map((of) => said(of)),
      });
      return runs.some(({ task }) => task === "sum");
    });
    expect(came.map(({ task }) => task)).toEqual(["piece", "piece", "sum"]);
    expect(came.find(({ runId }) => runId === lost[0]?.runId)?.attempt).toBe(2);
    const joining = came.at(-1) as GivenRun;
    const { inputs } = await stage.poll(key, { session: hand, inputsOf: claimOf(joining) });
    expect(inputs?.inputs.map(({ runId, outcome }) => [outcome, runId === cancelled]).sort()).toEqual([
      ["cancelled", true],
      ["succeeded", false],
      ["succeeded", false],
    ]);
    await stage.poll(key, { session: hand, verdicts: [said(joining)], leave: true });
    expect(await countOf("sum")).toBe(1);
  });

  test("a chain continues in the write that ends its run, with key and state", async () => {
    const { runId } = await stage.server.enqueue("parent", 1, { key: "reader" });
    const { runs } = await stage.poll(key, { session, want: 1, waitMs: limits.pollWaitMs });
    const onward = { continueAs: { payload: 2, state: { from: 1 } } };
    const verdicts = [said(runs[0] as GivenRun, { outcome: "succeeded", onward })];
    await stage.poll(key, { session, verdicts });
    await stage.poll(key, { session, verdicts }, second());
    const { runs: next } = await stage.poll(key, { session, want: 9, waitMs: limits.pollWaitMs });
    expect(next).toMatchObject([{ task: "parent", key: "reader", payload: 2, state: { from: 1 }, attempt: 1 }]);
    const { inputs } = await stage.poll(key, { session, inputsOf: claimOf(next[0] as GivenRun) });
    expect(inputs?.inputs).toMatchObject([{ runId, outcome: "succeeded" }]);
    await stage.poll(key, { session, verdicts: next.map((run) => said(run)) });
  });

  test("a success with an impossible continuation fails its attempt, and is not refused when repeated", async () => {
    for (const [onward, code, state] of [
      [{ join: "nobody" }, "TASK_UNKNOWN", "failed"],
      [{ join: "vaulted" }, "KEY_FORBIDDEN", "failed"],
      [{ continueAs: { payload: "x".repeat(limits.payloadBytes) } }, "PAYLOAD_TOO_LARGE", "failed"],
    ] as const) {
      const run = await stage.claimed(key, session, "parent");
      const verdicts = [said(run, { outcome: "succeeded", onward })];
      for (const server of [stage.server, second()])
        expect((await stage.poll(key, { session, verdicts }, server)).refused).toEqual([]);
      expect(await recordOf(run.runId)).toMatchObject({ state, error: { code } });
    }
    const { status, body } = await stage.post(key, {
      session,
      verdicts: [{ runId: 1, fence: 1, outcome: "failed", onward: { join: "publish" } }],
    });
    expect([status, body.detail]).toEqual([400, expect.stringMatching(/only a success goes on/)]);
  });

  test("an invalid spawn is refused as a whole: no child is made, and a success sent with it does not count", async () => {
    const run = await stage.claimed(key, session, "parent");
    const before = await countOf("child");
    const spawn = async (children: object[], more: object = {}) =>
      stage.poll(key, { session, spawns: [{ ...claimOf(run), children, ...more }] });
    expect(codes(await spawn([one("a"), one("b", "nobody")]))).toEqual(["spawn TASK_UNKNOWN"]);
    expect(codes(await spawn([one("a")], { join: "nobody" }))).toEqual(["spawn TASK_UNKNOWN"]);
    expect(codes(await spawn([one("a"), one("b", "vaulted")]))).toEqual(["spawn KEY_FORBIDDEN"]);
    const huge = one("b", "child", "x".repeat(limits.payloadBytes));
    expect(codes(await spawn([one("a"), huge]))).toEqual(["spawn PAYLOAD_TOO_LARGE"]);
    // Creates one child less than a run may have.
    await stage.rows(
      `insert into $s.run (id, task_id, group_id, version, state, due_ms, created_ms, priority, gate, after_end, source, key, parent_id)
       select nextval('$s.run_id'), r.task_id, r.group_id, r.version, 1, 0, 0, r.priority, 0, false, ${sourceNumber("child")}, $1 || '/old ' || i, $1::bigint
       from $s.run r, generate_series(1, ${limits.children - 1}) as i where r.id = $1::bigint`,
      [String(run.runId)],
    );
    expect(codes(await spawn([one("a"), one("b")]))).toEqual(["spawn OPTION_INVALID"]);
    const many = Array.from({ length: 501 }, (_, n) => one(`${n}`));
    const asked = { ...claimOf(run), children: many };
    for (const spawns of [[asked, asked], [{ ...asked, children: [...many, ...many] }]])
      expect(await stage.post(key, { session, spawns })).toMatchObject({
        status: 400,
        body: { code: "REQUEST_INVALID" },
      });

    const told = await stage.poll(key, {
      session,
      spawns: [{ ...claimOf(run), children: [one("a", "nobody")] }],
      verdicts: [said(run, { outcome: "succeeded", onward: { join: "publish" } })],
    });
    expect(codes(told)).toEqual(["spawn TASK_UNKNOWN", "verdict REQUEST_INVALID"]);
    expect((await recordOf(run.runId)).state).toBe("claimed");
    expect(await countOf("child")).toBe(before);
    await stage.rows("delete from $s.run where parent_id = $1", [run.runId]);
    await stage.poll(key, { session, verdicts: [said(run)] });
  });

  test("requests about another key's run, with an old fence, or about an unknown run are refused", async () => {
    const other = await stage.key("other");
    const theirs = await stage.join(other, { tasks: ["parent"] });
    const run = await stage.claimed(key, session, "again");
    const about = (claim: { runId: number; fence: number }) => ({
      states: [{ ...claim, state: 1 }],
      spawns: [{ ...claim, children: [one("stolen")] }],
      inputsOf: claim,
    });
    const all = (code: string) => ["state", "spawn", "inputs"].map((part) => `${part} ${code}`);
    const foreign = await stage.poll(other, { session: theirs, ...about(claimOf(run)) });
    expect(codes(foreign)).toEqual(all("CLAIM_FOREIGN"));
    expect(foreign).toMatchObject({ spawned: [], refused: [{ status: 403 }, { status: 403 }, { status: 403 }] });
    const never = { runId: run.runId, fence: run.fence + 10_000 };
    expect(codes(await stage.poll(key, { session, ...about(never) }))).toEqual(all("RUN_UNKNOWN"));
    await stage.poll(key, { session, verdicts: [said(run, { outcome: "failed", retryAfterMs: 0 })] });
    for (const server of [stage.server, second()])
      expect(codes(await stage.poll(key, { session, ...about(claimOf(run)) }, server))).toEqual(all("FENCE_STALE"));
    await stage.server.cancel(run.runId);
    // Simulates a claim that was taken back before its server has noticed, so that the store refuses.
    const lost = await stage.claimed(key, session, "parent");
    await stage.rows("update $s.run set fence = fence + 100000 where id = $1", [lost.runId]);
    expect(codes(await stage.poll(key, { session, ...about(claimOf(lost)) }))).toEqual(all("FENCE_STALE"));
    await stage.rows("update $s.run set fence = fence - 100000 where id = $1", [lost.runId]);
    await stage.poll(key, { session, verdicts: [said(lost)] });
    expect(
      (await stage.store.runs.list({ task: "child", limit: 9_999 })).filter((r) => r.key?.endsWith("stolen")),
    ).toEqual([]);
  });

  test("a failure may set the retry delay, within the task's own delay and maximum", async () => {
    for (const [retryAfterMs, leastMs, mostMs] of [
      [30_000, 29_000, 31_000],
      [10, 0, 2_000],
      [3_600_000, 59_000, 61_000],
    ] as const) {
      const run = await stage.claimed(key, session, "again");
      await stage.poll(key, { session, verdicts: [said(run, { outcome: "failed", retryAfterMs })] });
      const [ended] = await stage.store.runs.attempts(run.runId);
      const inMs = (await recordOf(run.runId)).dueMs - (ended?.endedMs ?? 0);
      expect(inMs).toBeGreaterThanOrEqual(leastMs);
      expect(inMs).toBeLessThan(mostMs);
      await stage.server.cancel(run.runId);
    }
  });
});

describe("carillon/worker", () => {
  async function start(handlers: Record<string, Handler>, server = stage.urlOf()) {
    const mine = worker({ server, key, handleSignals: false, log: recordingLog().log, drain: "10s" });
    for (const [task, handler] of Object.entries(handlers)) mine.task(task, handler);
    return mine.start();
  }
  const ended = (runId: number) =>
    until(`run ${runId} has ended`, async () => (await recordOf(runId)).endedMs !== null);

  test("fans out, joins and chains as in a process with the store, even if answers are cut off", async () => {
    for (const name of ["resize", "gallery", "count-up"]) await stage.task(name);
    await stage.task("resize-all", { retry: { attempts: 3, delay: 0 } });
    const proxy = await StoreProxy.before(stage.urlOf());
    const joined: unknown[] = [];
    const states: unknown[] = [];
    const mine = await start(
      {
        resize: (_run, file) => {
          if (file === "broken") throw new Error("no image");
          return { file };
        },
        gallery: async (run, title) => {
          joined.push(
            title,
            (await run.inputs()).map(({ key, outcome, result }) => [key, outcome, result]),
          );
        },
        "resize-all": async (run, files) => {
          // The server has created the child, but its reply is lost, so the repeated request finds the child.
          proxy.swallowReply((reply) => reply.includes('"spawned"'));
          const early = await run.spawn("resize", "early");
          expect(early.created).toBe(false);
          const children = (files as string[]).map((file) => ({ task: "resize", payload: file, key: file }));
          const next = await run.fanOut(children, { join: "gallery", payload: "summer" });
          if (run.attempt === 1) throw new Error("once more");
          return next;
        },
        "count-up": async (run, n) => {
          states.push([n, run.attempt, run.state]);
          proxy.swallowReply((reply) => reply.includes('"session"'));
          await run.saveState({ n });
          expect(run.state).toEqual({ n });
          return (n as number) < 2 ? run.continueAs((n as number) + 1, { state: { from: n } }) : "top";
        },
      },
      proxy.url,
    );
    const { runId } = await stage.server.enqueue("resize-all", ["a", "b", "broken"]);
    await until("the join", () => joined.length > 0);
    expect(joined).toEqual([
      "summer",
      [
        ["#0", "succeeded", { file: "early" }],
        ["a", "succeeded", { file: "a" }],
        ["b", "succeeded", { file: "b" }],
        ["broken", "failed", null],
      ],
    ]);
    expect(await recordOf(runId)).toMatchObject({ state: "succeeded", attempt: 2, result: null });
    const { runId: first } = await stage.server.enqueue("count-up", 1);
    await ended(first);
    await until("the chain's end", async () =>
      (await stage.store.runs.list({ task: "count-up", states: ["succeeded"], limit: 9 })).some(
        ({ result }) => result === "top",
      ),
    );
    expect(states).toEqual([
      [1, 1, null],
      [2, 1, { from: 1 }],
    ]);
    expect(proxy.swallowed).toBeGreaterThanOrEqual(3);
    await mine.stop();
    await proxy.close();
    expect(await countOf("resize")).toBe(4);
    expect(await countOf("gallery")).toBe(1);
  });

  test("reports invalid requests to handlers, spawns more than one request holds, and sends retry delays", async () => {
    await stage.task("wide");
    await stage.task("later", { retry: { attempts: 2, delay: 0, maxDelay: "1h" } });
    const mine = await start({
      wide: async (run) => {
        const told: unknown[] = [];
        for (const wrong of [
          () => run.spawn("nobody"),
          () => run.spawn("vaulted"),
          () => run.fanOut([{ task: "child" }], { join: "nobody" }),
          () => run.spawn("child", "x".repeat(limits.payloadBytes)),
        ])
          await wrong().catch((error) => told.push(isCarillonError(error) ? error.code : String(error)));
        const made = await Promise.all(Array.from({ length: 1_100 }, (_, n) => run.spawn("child", n)));
        return [...told, new Set(made.map(({ runId }) => runId)).size];
      },
      later: () => {
        throw new CarillonError("HTTP_FAILED", "too many", { retryAfterMs: 120_000 });
      },
    });
    const { runId } = await stage.server.enqueue("wide");
    const late = (await stage.server.enqueue("later")).runId;
    await ended(runId);
    expect(await recordOf(runId)).toMatchObject({
      state: "succeeded",
      result: ["TASK_UNKNOWN", "KEY_FORBIDDEN", "TASK_UNKNOWN", "PAYLOAD_TOO_LARGE", 1_100],
    });
    await until("it has failed once", async () => (await stage.store.runs.attempts(late)).length === 1);
    const [attempt] = await stage.store.runs.attempts(late);
    const inMs = (await recordOf(late)).dueMs - (attempt?.endedMs ?? 0);
    // The worker reports the attempt's end as an age, so the time may be off by the duration of the request and its reply.
    expect(inMs).toBeGreaterThan(110_000);
    expect(inMs).toBeLessThan(240_000);
    await mine.stop();
  });
});
