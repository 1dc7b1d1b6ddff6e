import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { statusOf } from "../../src/api/problem-status.ts";
import type { GivenRun } from "../../src/api/worker-protocol.ts";
import {
  type ClaimEvent,
  type ClaimState,
  claimEvents,
  claimStandings,
  claimStandingTable,
  type SessionAnswer,
  type SessionEvent,
  type SessionState,
  sessionEvents,
  sessionStates,
  sessionTable,
} from "../../src/api/worker-table.ts";
import type { ErrorCode } from "../../src/base/errors.ts";
import { limits } from "../../src/base/limits.ts";
import { type Answer, RemoteStage, said } from "../support/remote-stage.ts";

/** Plays each event in each state of the worker protocol's tables against two servers. */

const stage = new RemoteStage();
const keys = { mine: "", other: "" };
const change = () => ({ author: "test", reason: "", nowMs: Date.now() });

beforeAll(async () => {
  await stage.serve();
  await stage.serve();
  for (const name of ["mine", "other"] as const) keys[name] = await stage.key(name);
  await stage.task("echo");
});
afterAll(() => stage.close());

const answerOf = ({ status, body }: Answer): SessionAnswer =>
  status === 200 ? "answered" : (body.code as Exclude<SessionAnswer, "answered" | null>);
const statusesAgree = ({ status, body }: Answer) =>
  expect(status).toBe(status === 200 ? 200 : statusOf(body.code as ErrorCode));

describe.each(sessionStates)("a session that is %s", (state: SessionState) => {
  test.each(sessionEvents)("%s", async (event: SessionEvent) => {
    const name = `w-${randomBytes(4).toString("hex")}`;
    const key = await stage.key(name);
    const join = { name, instance: "first", timeoutMs: limits.workerTimeoutMs };
    // In this case the waiting poll lasts longer than the short session timeout, so that only the poll keeps the session alive.
    const brief = state === "waiting" && event === "silence" ? { timeoutMs: 1_500 } : {};
    let session = 999_999;
    if (state !== "none") session = (await stage.poll(key, { join: { ...join, ...brief } })).session;
    const waitMs = event === "silence" ? 4_000 : limits.pollWaitMs;
    const waiting = state === "waiting" ? stage.post(key, { session, waitMs }, { server: stage.second }) : undefined;
    if (state === "ended") await stage.store.sessions.end(session, null, Date.now(), "test");
    if (state === "revoked") await stage.store.workers.revokeKey(name, change());

    const polls: Partial<Record<SessionEvent, () => Promise<Answer>>> = {
      join: () => stage.post(key, { join: { ...join, instance: "second" } }),
      "join again": () => stage.post(key, { join }),
      poll: () => stage.post(key, { session, holds: [] }, { server: stage.second }),
      wait: () => stage.post(key, { session, waitMs: 0 }, { server: stage.second }),
      leave: () => stage.post(key, { session, leave: true }, { server: stage.second }),
      "another key polls": () => stage.post(keys.other, { session }),
    };
    const step = sessionTable[state][event];
    const answer = await polls[event]?.();
    if (answer) statusesAgree(answer);
    if (event === "revoke" && state !== "revoked") await stage.store.workers.revokeKey(name, change());
    // Ends the session, as a server does when it has received no heartbeat of the session for the session timeout.
    if (event === "silence" && state === "live") await stage.store.sessions.end(session, null, Date.now(), "test");
    expect(answer ? answerOf(answer) : null).toBe(step.answer);
    if (step.waiting) expect(answerOf(await (waiting as Promise<Answer>))).toBe(step.waiting);
    else if (event === "silence" && waiting) expect(answerOf(await waiting)).toBe("answered");
    const next = answer?.status === 200 ? answer.body.session : session;
    expect(answerOf(await stage.post(key, { session: next }, { server: stage.second }))).toBe(
      sessionTable[step.next].poll.answer,
    );
    if (waiting && !step.waiting) {
      await stage.post(key, { session, leave: true }, { server: stage.second });
      await waiting;
    }
  });
});

describe.each(claimStandings)("a claim that is %s", (state: ClaimState) => {
  const word = { outcome: "succeeded", result: "first" };
  const lateOf = (runId: number) => stage.rows("select 1 from $s.late_result where run_id = $1", [runId]);

  /** Creates a claim in the given state. @returns the worker's present session, the run, and the worker's name */
  async function arranged(): Promise<{ session: number; run: GivenRun; name: string }> {
    const name = `w-${randomBytes(4).toString("hex")}`;
    const session = await stage.join(keys.mine, { name });
    if (state === "foreign") return { session, name, run: await stage.claimed(keys.mine, await stage.join(keys.mine)) };
    const run = await stage.claimed(keys.mine, session);
    if (state === "unknown") return { session, name, run: { ...run, fence: 2 ** 50 } };
    if (state === "cancelling") expect(await stage.store.runs.cancel(run.runId, "enough", Date.now())).toBe("asked");
    if (state === "ended") await stage.poll(keys.mine, { session, verdicts: [said(run, word)] });
    if (state === "released") await stage.poll(keys.mine, { session, verdicts: [said(run, { outcome: "released" })] });
    return state === "lost" ? { run, name, session: await takenBack(session, name) } : { session, name, run };
  }

  /** Ends the session and takes its claims back. @returns the session with which the worker joins again */
  async function takenBack(session: number, name: string): Promise<number> {
    await stage.store.sessions.end(session, null, Date.now(), "test");
    await stage.store.claims.reclaim(session, 3_600_000, Date.now(), 99);
    return stage.join(keys.mine, { name });
  }

  const parts: Partial<Record<ClaimEvent, (run: GivenRun) => object>> = {
    report: ({ runId, fence }) => ({ reports: [{ runId, fence, startedAgoMs: 0 }] }),
    log: ({ runId, fence }) => ({ logs: [{ runId, fence, message: "line" }] }),
    state: ({ runId, fence }) => ({ states: [{ runId, fence, state: 1 }] }),
    span: ({ runId, fence }) => ({
      spans: [{ runId, fence, context: `00-${"1".repeat(32)}-${"1".repeat(16)}-01` }],
    }),
    spawn: ({ runId, fence }) => ({ spawns: [{ runId, fence, children: [] }] }),
    inputs: ({ runId, fence }) => ({ inputsOf: { runId, fence } }),
    hold: ({ fence }) => ({ holds: [fence] }),
    verdict: (run) => ({ verdicts: [said(run, { outcome: "succeeded", result: "another" })] }),
    release: (run) => ({ verdicts: [said(run, { outcome: "released" })] }),
    "same again": (run) => ({ verdicts: [said(run, state === "released" ? { outcome: "released" } : word)] }),
    "inexact verdict": (run) => ({ verdicts: [said(run, { outcome: "succeeded", result: "LARGE" })] }),
  };
  const played = claimEvents.filter((event) =>
    event in parts ? claimStandingTable[state][event][1] !== null : claimStandingTable[state][event][0] !== state,
  );

  test.each(played)("%s", async (event: ClaimEvent) => {
    const { session: began, run, name } = await arranged();
    const [next, answer] = claimStandingTable[state][event];
    let session = began;
    const part = parts[event];
    if (part) {
      const body = JSON.stringify({ session, ...part(run) }).replace('"LARGE"', "12345678901234567890");
      const { status, body: told } = await stage.post(keys.mine, body, { server: stage.second });
      expect(status).toBe(200);
      const code = answer === "late" ? "FENCE_STALE" : answer;
      if (answer === "accepted" || answer === "in lost") expect(told.refused).toEqual([]);
      else
        expect(told.refused).toMatchObject([
          { runId: run.runId, fence: run.fence, status: statusOf(code as ErrorCode), code },
        ]);
      expect(told.lost).toEqual(answer === "in lost" ? [run.fence] : []);
      expect((await lateOf(run.runId)).length).toBe(answer === "late" ? 1 : 0);
    } else if (event === "cancel") await stage.store.runs.cancel(run.runId, "enough", Date.now());
    else if (event === "take back") session = await takenBack(session, name);
    else {
      const other = await stage.join(keys.mine);
      const { runs } = await stage.poll(keys.mine, { session: other, want: 1, waitMs: limits.pollWaitMs });
      expect(runs.map(({ runId }) => runId)).toEqual([run.runId]);
    }
    // Checks the claim's new state by the server's answer to a report, if the worker may still send a report for the claim.
    const after = await stage.poll(keys.mine, { session, ...parts.report?.(run) }, stage.second);
    const reported = claimStandingTable[next].report[1];
    expect(after.refused.map(({ code }) => code)).toEqual(reported === "accepted" ? [] : [reported]);
    await stage.rows("delete from $s.run");
  });
});
