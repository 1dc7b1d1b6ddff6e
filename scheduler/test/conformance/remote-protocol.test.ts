import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { GivenRun } from "../../src/api/worker-protocol.ts";
import { limits } from "../../src/base/limits.ts";
import { RemoteStage, said } from "../support/remote-stage.ts";
import { until } from "../support/store-stage.ts";

const stage = new RemoteStage();
let key = "";
let other = "";

beforeAll(async () => {
  await stage.serve();
  await stage.serve();
  key = await stage.key("mine");
  other = await stage.key("other");
  await stage.task("echo", { retry: 3 });
  await stage.task("once");
  await stage.task("patient", { grace: "10m" });
  await stage.task("secret", { group: "vault" });
});
afterAll(() => stage.close());

const lateResults = (runId: number) =>
  stage.rows<{ fence: number; session_id: number; outcome: number }>(
    "select fence, session_id, outcome from $s.late_result where run_id = $1",
    [runId],
  );
/** Ends a session and takes its claims back, as for a dead worker; its runs that were due at `endedMs` count as started. */
async function lose(session: number, endedMs: number): Promise<void> {
  await stage.store.sessions.end(session, null, endedMs, "test");
  await stage.store.claims.reclaim(session, 1e12, Date.now(), 100);
}

describe("a poll", () => {
  test("claims, returns the claimed run, and accepts the verdict", async () => {
    const session = await stage.join(key);
    const run = await stage.claimed(key, session, "echo", { a: 1 });
    expect(run).toMatchObject({ task: "echo", attempt: 1, payload: { a: 1 }, slotMs: null, key: null });
    expect(run.dueInMs).toBeLessThanOrEqual(0);
    const verdict = said(run, { outcome: "succeeded", result: { b: 2 }, startedAgoMs: 5 });
    const answer = await stage.poll(key, {
      session,
      verdicts: [verdict],
      logs: [{ runId: run.runId, fence: run.fence, message: "half\u0000way", fields: { n: 1 } }],
    });
    expect(answer).toMatchObject({ runs: [], refused: [], recalls: [], lost: [] });
    const record = await stage.store.runs.find(run.runId);
    expect(record).toMatchObject({ state: "succeeded", result: { b: 2 }, attempt: 1 });
    expect(record.startedMs).toBeGreaterThanOrEqual(record.claimedMs as number);
    expect(await stage.store.runs.logs(run.runId, 9)).toMatchObject([
      { message: "half\ufffdway", fields: { n: 1 }, attempt: 1 },
    ]);
  });

  test("returns the free slots of other workers, and only for tasks of its own groups", async () => {
    const [session, beside] = [
      await stage.join(key, { name: "asks", concurrency: 1 }),
      await stage.join(key, { name: "idle", concurrency: 3, tasks: ["echo", "once"] }),
    ];
    const idOf = async (task: string) => (await stage.store.tasks.byName(task)).taskId;
    const placesFor = await Promise.all(["echo", "patient", "secret"].map(idOf));
    const { places } = await stage.poll(key, { session, placesFor });
    expect(places).toContainEqual({ places: 3, taskIds: [placesFor[0]] });
    expect(places?.flatMap(({ taskIds }) => taskIds)).not.toContain(placesFor[2]);
    expect((await stage.poll(key, { session })).places, "not asked for").toBeUndefined();
    for (const one of [session, beside]) await stage.poll(key, { session: one, leave: true });
  });

  test("waits, and is answered when a run is enqueued, not when its wait is over", async () => {
    // This poll is for another task; it begins before the second poll and has the same time limit. While it still waits, the time limit of
    // the second poll is not over.
    const aside = await stage.join(key, { tasks: ["patient"] });
    const idle = stage.post(key, { session: aside, want: 5, waitMs: limits.pollWaitMs });
    const session = await stage.join(key);
    const waiting = stage.poll(key, { session, want: 5, waitMs: limits.pollWaitMs });
    await stage.server.enqueue("echo", "wake");
    const { runs } = await waiting;
    expect(await Promise.race([idle.then(() => true), new Promise((done) => setTimeout(done, 20, false))])).toBe(false);
    await Promise.all([idle, stage.poll(key, { session: aside, leave: true })]);
    expect(runs.map(({ payload }) => payload)).toEqual(["wake"]);
    await stage.poll(key, { session, verdicts: runs.map((run) => said(run)), leave: true });
  });

  test("with aheadMs claims runs due soon and returns their due time, otherwise only due runs", async () => {
    const session = await stage.join(key);
    await stage.server.enqueue("echo", null, { in: 3_000 });
    expect((await stage.poll(key, { session, want: 5 })).runs).toEqual([]);
    const { runs } = await stage.poll(key, { session, want: 5, aheadMs: 4_000 });
    expect(runs).toHaveLength(1);
    expect((runs[0] as GivenRun).dueInMs).toBeGreaterThan(0);
    await stage.poll(key, { session, verdicts: runs.map((run) => said(run, { outcome: "released" })) });
    expect(await stage.stateOf((runs[0] as GivenRun).runId)).toBe("ready");
    await stage.server.cancel((runs[0] as GivenRun).runId);
  });

  test("ends an earlier poll that is waiting", async () => {
    const session = await stage.join(key);
    const waiting = stage.poll(key, { session, want: 1, waitMs: limits.pollWaitMs });
    await until("it waits", async () => {
      await stage.poll(key, { session, waitMs: 0 });
      return Promise.race([waiting.then(() => true), new Promise<boolean>((done) => setTimeout(done, 20, false))]);
    });
    expect((await waiting).runs).toEqual([]);
  });

  test("is notified of a cancellation at once, and a withdrawal of a running run is answered", async () => {
    const session = await stage.join(key);
    const run = await stage.claimed(key, session);
    const waiting = stage.poll(key, { session, holds: [run.fence], waitMs: limits.pollWaitMs });
    expect(await stage.store.runs.cancel(run.runId, "enough", Date.now())).toBe("asked");
    await until("the recall is told", async () => {
      const { recalls } = await stage.poll(key, { session });
      return recalls.some(({ kind, why, fence }) => kind === "cancel" && why === "enough" && fence === run.fence);
    });
    await waiting;
    await stage.poll(key, { session, verdicts: [said(run, { outcome: "cancelled", error: { message: "stopped" } })] });
    expect(await stage.stateOf(run.runId)).toBe("cancelled");

    const kept = await stage.claimed(key, session, "once");
    const paused = stage.server.pause("once");
    await until("the withdrawal is told", async () => {
      const { recalls } = await stage.poll(key, { session });
      return recalls.some(({ kind }) => kind === "withdraw");
    });
    await stage.poll(key, {
      session,
      reports: [{ runId: kept.runId, fence: kept.fence, startedAgoMs: 10, progress: 0.5 }],
    });
    expect((await paused).started).toEqual([kept.runId]);
    expect((await stage.store.runs.find(kept.runId)).progress).toBe(0.5);
    await stage.poll(key, { session, verdicts: [said(kept)] });
    await stage.server.resume("once");
  });

  test("a failure is retried as the task says, not as the worker says", async () => {
    const session = await stage.join(key, { tasks: ["echo", "once"] });
    const failed = { outcome: "failed", error: { message: "no \u0000 luck" } };
    const again = await stage.claimed(key, session, "echo");
    await stage.poll(key, { session, verdicts: [said(again, failed)] });
    expect(await stage.stateOf(again.runId)).toBe("ready");
    await stage.server.cancel(again.runId);
    const final = await stage.claimed(key, session, "echo");
    await stage.poll(key, { session, verdicts: [said(final, { ...failed, retry: false })] });
    expect(await stage.stateOf(final.runId)).toBe("failed");
    const single = await stage.claimed(key, session, "once");
    await stage.poll(key, { session, verdicts: [said(single, failed)] });
    expect(await stage.store.runs.find(single.runId)).toMatchObject({
      state: "failed",
      error: { message: "no \ufffd luck" },
    });
  });

  test("returns no run of a task that the worker does not list", async () => {
    const session = await stage.join(key, { tasks: ["once"] });
    await stage.poll(key, { session, want: 1 });
    const foreign = await stage.server.enqueue("echo");
    const { runId } = await stage.server.enqueue("once");
    const { runs } = await stage.poll(key, { session, want: 10, waitMs: 5_000 });
    expect(runs.map((run) => run.runId)).toEqual([runId]);
    await stage.task("late-comer");
    await stage.server.enqueue("late-comer");
    expect((await stage.poll(key, { session, want: 10, waitMs: 300 })).runs).toEqual([]);
    await stage.server.cancel(foreign.runId);
    await stage.server.remove("late-comer");
    await stage.poll(key, { session, verdicts: runs.map((run) => said(run)) });
  });
});

test("runs of a task that no live worker of the group lists are reported to the leader, until one does", async () => {
  const lister = await stage.key("lister", ["listed"]);
  await stage.task("named", { group: "listed" });
  await stage.task("unnamed", { group: "listed" });
  for (const task of ["named", "unnamed"]) await stage.server.enqueue(task);
  // The result includes the live members, so that a failure shows them.
  const unserved = async (inMs = 61_000): Promise<{ unserved: string[]; there: string[] }> => {
    const { leadership, members } = await stage.store.sessions.members();
    const leader = leadership.sessionId as number;
    const pulse = await stage.store.sessions.beat(leader, Date.now() + inMs, { unserved: true });
    const there = members.filter(({ groups }) => groups?.includes("listed"));
    return {
      unserved: (pulse.unserved ?? []).filter((what) => /listed|named/.test(what)),
      there: there.map(({ sessionId, tasks }) => `${sessionId}: ${tasks ?? "any"}`),
    };
  };
  const comesTo = (what: string[]) => expect.poll(() => unserved()).toMatchObject({ unserved: what });
  // The check is repeated, because after a slow heartbeat only a later heartbeat reports the groups and tasks without a worker.
  await comesTo(["group listed"]);
  const session = await stage.join(lister, { tasks: ["named"] });
  await comesTo(["task unnamed"]);
  const able = await stage.join(lister, { tasks: ["unnamed", "other"] });
  await comesTo([]);
  await stage.poll(lister, { session: able, leave: true });
  await comesTo(["task unnamed"]);
  const any = await stage.join(lister);
  await comesTo([]);
  const { members } = await stage.store.sessions.members();
  expect(members.find(({ sessionId }) => sessionId === session)?.tasks).toEqual(["named"]);
  expect(members.find(({ sessionId }) => sessionId === any)?.tasks).toBe(null);
  const { runs } = await stage.poll(lister, { session: any, want: 9 });
  await stage.poll(lister, { session: any, verdicts: runs.map((run) => said(run)), leave: true });
  await stage.poll(lister, { session, leave: true });
});

describe("lost answers", () => {
  test("a repeated join opens one session", async () => {
    const join = { name: "twin", instance: "abc" };
    expect(await stage.join(key, join)).toBe(await stage.join(key, join));
    const { status, body } = await stage.post(key, { join: { ...join, instance: "other" } });
    expect([status, body.code]).toEqual([409, "NODE_NAME_TAKEN"]);
    expect(body.detail).toBe("the name twin is used by a live process");
    await stage.join(key, { name: "placed", host: "node-7", pid: 42 });
    const placed = await stage.post(key, { join: { name: "placed" } });
    expect(placed.body.detail).toBe("the name placed is used by a live process: pid 42 on node-7");
  });

  test("claims are returned again to a worker that does not list them, by any server, and not to one that does", async () => {
    const session = await stage.join(key);
    const run = await stage.claimed(key, session);
    for (const server of [stage.server, stage.second]) {
      const again = await stage.poll(key, { session, holds: [] }, server);
      expect(again.runs.map(({ fence }) => fence)).toEqual([run.fence]);
      const none = await stage.poll(key, { session, holds: [run.fence], want: 1 }, server);
      expect([none.runs, none.lost]).toEqual([[], []]);
    }
    // The worker has as many free slots as it asks for. Claims that it does not list in `holds` are sent again and take slots first.
    const waits = await stage.server.enqueue("echo");
    const one = await stage.poll(key, { session, holds: [], want: 1 });
    expect(one.runs.map(({ fence }) => fence)).toEqual([run.fence]);
    // A claim that is sent again is in the reply at once; the new run only after it was claimed.
    const two = await until("both to be given", async () => {
      const answer = await stage.poll(key, { session, holds: [], want: 2, waitMs: 5_000 });
      return answer.runs.length > 1 && answer;
    });
    expect(two.runs.map(({ runId }) => runId)).toEqual([run.runId, waits.runId]);
    await stage.poll(key, { session, verdicts: two.runs.slice(1).map((other) => said(other)) });
    await stage.poll(key, { session, verdicts: [said(run)] }, stage.second);
    const after = await stage.poll(key, { session, holds: [run.fence] }, stage.second);
    expect(after.runs).toEqual([]);
    expect(await stage.stateOf(run.runId)).toBe("succeeded");
  });

  test("a poll whose client disconnects loses no run: the claimed run is returned later", async () => {
    const session = await stage.join(key);
    const cut = new AbortController();
    const waiting = stage.post(key, { session, want: 1, waitMs: limits.pollWaitMs }, { signal: cut.signal });
    cut.abort();
    await expect(waiting).rejects.toThrow();
    const { runId } = await stage.server.enqueue("echo");
    const { runs } = await stage.poll(key, { session, holds: [], want: 1, waitMs: 20_000 });
    expect(runs.map((run) => run.runId)).toEqual([runId]);
    await stage.poll(key, { session, verdicts: runs.map((run) => said(run)) });
  });

  test("a run that another server claims for a session that moved on reaches that session", async () => {
    const session = await stage.join(key);
    await stage.poll(key, { session, want: 1 });
    const runId = await stage.claimedUnheard(session);
    const { runs } = await stage.poll(key, { session, want: 1, waitMs: 20_000 });
    expect(runs.map((run) => run.runId)).toEqual([runId]);
    await stage.poll(key, { session, verdicts: runs.map((run) => said(run)) });
  });

  test("a repeated verdict is applied once, and not refused, by any server", async () => {
    const session = await stage.join(key);
    for (const outcome of ["succeeded", "failed", "cancelled", "released"]) {
      const run = await stage.claimed(key, session, "once");
      const verdicts = [said(run, { outcome })];
      for (const server of [stage.server, stage.server, stage.second])
        expect((await stage.poll(key, { session, verdicts }, server)).refused).toEqual([]);
      expect(await lateResults(run.runId)).toEqual([]);
      if (outcome === "released") await stage.server.cancel(run.runId);
    }
    const { taskId } = await stage.store.tasks.byName("once");
    const ended = (await stage.store.tasks.counters([taskId])).get(taskId);
    const rows = await stage.rows<{ count: number }>("select count(*) from $s.run_history where task_id = $1", [
      taskId,
    ]);
    expect((ended?.succeeded ?? 0) + (ended?.failed ?? 0) + (ended?.cancelled ?? 0)).toBe(rows[0]?.count);
  });
});

describe("a lost session", () => {
  test("is reported as lost, and claims that were not taken back move to its successor", async () => {
    const name = "comes-back";
    const session = await stage.join(key, { name });
    const run = await stage.claimed(key, session, "patient");
    // The start is reported, because a run without a reported start has no grace period.
    await stage.poll(key, { session, reports: [{ runId: run.runId, fence: run.fence, startedAgoMs: 0 }] });
    await stage.store.sessions.end(session, null, Date.now(), "test");
    await until("the server knows", async () => (await stage.post(key, { session })).body.code === "SESSION_LOST");
    const answer = await stage.poll(key, {
      join: { name, former: session, instance: "1" },
      holds: [run.fence, 12_345],
    });
    expect(answer).toMatchObject({ runs: [], lost: [12_345] });
    await stage.poll(key, { session: answer.session, verdicts: [said(run)] });
    expect(await stage.stateOf(run.runId)).toBe("succeeded");
    const stolen = await stage.post(other, { join: { name: "thief", former: answer.session } });
    expect([stolen.status, stolen.body.code]).toEqual([403, "KEY_FORBIDDEN"]);
  });

  test("has its verdict on a reclaimed run refused, recorded and not applied", async () => {
    for (const [name, endedMs] of [
      ["late", Date.now() + 60_000],
      ["never", 1],
    ] as const) {
      const session = await stage.join(key, { name });
      const run = await stage.claimed(key, session);
      await lose(session, endedMs);
      const again = await stage.poll(key, { join: { name, former: session, instance: "2" }, holds: [run.fence] });
      expect(again.lost).toEqual([run.fence]);
      const { refused } = await stage.poll(key, { session: again.session, verdicts: [said(run)] });
      expect(refused).toMatchObject([{ fence: run.fence, status: 409, code: "FENCE_STALE" }]);
      expect(await stage.stateOf(run.runId)).toBe("ready");
      expect(await lateResults(run.runId)).toEqual([{ fence: run.fence, session_id: again.session, outcome: 0 }]);
      await stage.server.cancel(run.runId);
    }
  });
});

describe("a malicious client", () => {
  test("without a key, or with an unknown or revoked one, is refused", async () => {
    const revoked = await stage.key("gone");
    const session = await stage.join(revoked);
    await stage.store.workers.revokeKey("gone", { author: "test", reason: "", nowMs: Date.now() });
    const wrong = `${key.slice(0, -2)}AA`;
    for (const one of ["", "x", `ck_999_${"A".repeat(43)}`, wrong === key ? `${key.slice(0, -2)}BB` : wrong]) {
      const { status, body } = await stage.post(one, { join: { name: "rogue" } });
      expect([status, body.code]).toEqual([401, "KEY_UNKNOWN"]);
    }
    expect((await stage.post(revoked, { join: { name: "rogue" } })).body.code).toBe("KEY_UNKNOWN");
    await until("its session is over", async () => (await stage.post(revoked, { session })).status >= 400);
    expect((await fetch(`${stage.urlOf()}/v1/worker/poll/contract`)).status).toBe(401);
  });

  test("that tries many keys is blocked by its address, but valid workers at that address are not, old or new", async () => {
    const proxied = await stage.serve({ behindProxy: true });
    const from = async (address: string, one: string, body: object = {}) => {
      const headers = { authorization: `Bearer ${one}`, "content-type": "application/json" };
      return fetch(`${stage.urlOf(proxied)}/v1/worker/poll`, {
        method: "POST",
        // The header begins with addresses that the client itself sent; the proxy appends the real one.
        headers: { ...headers, "x-forwarded-for": `192.0.2.${Math.floor(Math.random() * 250)}, ${address}` },
        body: JSON.stringify(body),
      });
    };
    const known = await stage.join(key);
    expect((await from("198.51.100.7", key, { session: known })).status).toBe(200);
    const statuses: number[] = [];
    for (let n = 0; n < 60; n++)
      statuses.push((await from("198.51.100.7", `ck_${n + 1_000}_${"A".repeat(43)}`)).status);
    expect(statuses.slice(0, 19)).toEqual(Array(19).fill(401));
    expect(new Set(statuses.slice(19))).toEqual(new Set([429]));
    const told = await from("198.51.100.7", "");
    expect(Number(told.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await told.json()).toMatchObject({ status: 429, code: "KEY_THROTTLED" });
    expect((await from("198.51.100.7", key, { session: known })).status).toBe(200);
    expect((await from("198.51.100.7", other, { join: { name: "new-here" } })).status).toBe(200);
    expect((await from("198.51.100.8", "")).status).toBe(401);
    // This request does not come through the proxy, so the server ignores its header and uses the address of this machine.
    const faked = await fetch(`${stage.urlOf()}/v1/worker/poll`, {
      method: "POST",
      headers: { "x-forwarded-for": "198.51.100.7" },
    });
    expect(faked.status).toBe(401);
  });

  test("that sends another's session, group, run or fence, or an unknown one, is refused", async () => {
    const [mine, theirs] = [await stage.join(key), await stage.join(other)];
    const run = await stage.claimed(key, mine);
    expect(await stage.post(other, { session: mine })).toMatchObject({ status: 403, body: { code: "KEY_FORBIDDEN" } });
    expect(await stage.post(other, { join: { name: "x", groups: ["vault"] } })).toMatchObject({
      status: 403,
      body: { code: "KEY_FORBIDDEN" },
    });
    const spoken = [said(run), { ...said(run), fence: run.fence + 1_000 }];
    for (const body of [
      { verdicts: spoken },
      { logs: spoken.map(({ runId, fence }) => ({ runId, fence, message: "x" })) },
      { reports: spoken.map(({ runId, fence }) => ({ runId, fence, startedAgoMs: 1 })) },
    ]) {
      const { refused } = await stage.poll(other, { session: theirs, ...body });
      expect(refused).toMatchObject([
        { status: 403, code: "CLAIM_FOREIGN" },
        { status: 404, code: "RUN_UNKNOWN" },
      ]);
    }
    // A fence belongs to exactly one run, so a verdict that names it with another run's id is refused.
    const elsewhere = await stage.poll(key, { session: mine, verdicts: [{ ...said(run), runId: run.runId + 7_777 }] });
    expect(elsewhere.refused).toMatchObject([{ status: 404, code: "RUN_UNKNOWN" }]);
    expect(await stage.store.runs.find(run.runId)).toMatchObject({ state: "claimed", startedMs: null });
    expect(await stage.store.runs.logs(run.runId, 9)).toEqual([]);
    await stage.poll(key, { session: mine, verdicts: [said(run)] });
    const { runs } = await stage.poll(key, { session: mine, want: 5 });
    expect(runs).toEqual([]);
    expect((await stage.post(key, { session: 999_999 })).body.code).toBe("SESSION_LOST");
  });

  test("that violates the contract gets an error naming the field", async () => {
    const session = await stage.join(key);
    for (const [body, what] of [
      [{ session, wants: 1 }, /wants/],
      [{ session, verdicts: [{ runId: 1, fence: 1, outcome: "won" }] }, /verdicts\.0\.outcome/],
      [{ session, want: -1 }, /want/],
      [{ session, want: 1e9 }, /want/],
      [{}, /session or join/],
      [{ session, verdicts: [{ runId: 1, fence: 1.5, outcome: "failed" }] }, /fence/],
      [{ join: { name: "a\u0000b" } }, /name|NUL/],
      [{ join: { name: "../etc" } }, /name/],
      ["[1", /JSON/i],
      ['{"__proto__": {"x": 1}}', /__proto__/],
    ] as const) {
      const { status, body: told } = await stage.post(key, body);
      expect([status, told.detail]).toEqual([400, expect.stringMatching(what)]);
      expect(told.code).toMatch(/REQUEST_INVALID|TASK_INVALID/);
    }
    const text = await fetch(`${stage.urlOf()}/v1/worker/poll`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "text/plain" },
      body: "hello",
    });
    expect(text.headers.get("content-type")).toMatch("application/problem+json");
    expect(((await text.json()) as { code: string }).code).toBe("REQUEST_INVALID");
  });

  test("that sends a result above the size limit has completed its run, without a result", async () => {
    const session = await stage.join(key);
    const run = await stage.claimed(key, session);
    const result = "x".repeat(limits.payloadBytes + 1);
    await stage.poll(key, { session, verdicts: [said(run, { outcome: "succeeded", result })] });
    expect(await stage.store.runs.find(run.runId)).toMatchObject({ state: "succeeded", result: null });
    expect((await stage.store.runs.logs(run.runId, 9))[0]?.message).toMatch(/result was not kept/);
  });
});
