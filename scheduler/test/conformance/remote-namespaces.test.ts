import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type GivenRun, type PollRequest, pollRequest } from "../../src/api/worker-protocol.ts";
import { limits } from "../../src/base/limits.ts";
import { RemoteStage } from "../support/remote-stage.ts";

const stage = new RemoteStage();
let ours = "";
let theirs = "";
let ourSession = 0;
let theirSession = 0;
let ourRun = { runId: 0, fence: 0 };
let theirRun = { runId: 0, fence: 0 };

type Claim = { runId: number; fence: number };
type Field = Exclude<keyof PollRequest, "session" | "join">;
const context = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
const claimOf = ({ runId, fence }: GivenRun): Claim => ({ runId, fence });

beforeAll(async () => {
  await stage.serve();
  await stage.serve();
  ours = await stage.key("ours", ["ours/gpu"]);
  theirs = await stage.key("theirs", ["theirs/gpu"]);
  await stage.task("ours/settle", { group: "ours/gpu", retry: 3 });
  await stage.task("theirs/settle", { group: "theirs/gpu", retry: 3 });
  ourSession = await stage.join(ours, { timeoutMs: limits.workerTimeoutMs });
  theirSession = await stage.join(theirs, { timeoutMs: limits.workerTimeoutMs });
  await stage.poll(theirs, { session: theirSession }, stage.second);
  ourRun = claimOf(await stage.claimed(ours, ourSession, "ours/settle"));
  theirRun = claimOf(await stage.claimed(theirs, theirSession, "theirs/settle"));
});
afterAll(() => stage.close());

/**
 * The fields of a poll that name claims. `fill` makes the value of the field, or one element of it, for the given claim; `many`
 * is true if the field is a list.
 */
const ofClaims = {
  verdicts: { many: true, part: "verdict", fill: (claim: Claim) => ({ ...claim, outcome: "failed", retry: false }) },
  reports: { many: true, part: "report", fill: (claim: Claim) => ({ ...claim, startedAgoMs: 1, progress: "forged" }) },
  logs: { many: true, part: "log", fill: (claim: Claim) => ({ ...claim, message: "forged" }) },
  states: { many: true, part: "state", fill: (claim: Claim) => ({ ...claim, state: "forged" }) },
  spawns: {
    many: true,
    part: "spawn",
    fill: (claim: Claim) => ({ ...claim, children: [{ task: "theirs/settle", key: "forged" }] }),
  },
  spans: { many: true, part: "span", fill: (claim: Claim) => ({ ...claim, context }) },
  inputsOf: { many: false, part: "inputs", fill: (claim: Claim) => claim },
  secretOf: { many: false, part: "secret", fill: (claim: Claim) => ({ ...claim, name: "password" }) },
} satisfies Partial<Record<Field, { many: boolean; part: string; fill: (claim: Claim) => object }>>;

/** Fields of a poll that name no claim, or only claims of the poll's own session. */
const ofNone: Field[] = ["want", "aheadMs", "waitMs", "holds", "turn", "placesFor", "draining", "leave"];

/** Returns all rows about a run that a poll could change. */
async function seen(runId: number): Promise<unknown> {
  const [row] = await stage.rows(
    `select (select to_jsonb(r) from $s.run r where r.id = $1::bigint) as run,
            (select jsonb_agg(l) from $s.run_log l where l.run_id = $1::bigint) as logs,
            (select jsonb_agg(p) from $s.run_span p where p.run_id = $1::bigint) as spans,
            (select jsonb_agg(a) from $s.attempt a where a.run_id = $1::bigint) as attempts,
            (select jsonb_agg(h) from $s.run_history h where h.id = $1::bigint) as history,
            (select count(*) from $s.run c where c.parent_id = $1::bigint) as children`,
    [runId],
  );
  return row;
}

const isOurs = (task: string) => task.startsWith("ours/");
const isSame = (one: Claim, other: Claim) => one.runId === other.runId && one.fence === other.fence;
const nobody = 999_999_999;
const forged = (): Record<string, Claim> => ({
  "another's claim": ourRun,
  "another's run under the fence of its own claim": { runId: ourRun.runId, fence: theirRun.fence },
  "its own run under another's fence": { runId: theirRun.runId, fence: ourRun.fence },
  "a run that is not there yet, under its own fence": { runId: nobody, fence: theirRun.fence },
});

describe("a worker key cannot reach another namespace", () => {
  test("every field of a poll is tested", () => {
    const fields = Object.keys(pollRequest.shape).filter((name) => name !== "session" && name !== "join");
    expect([...Object.keys(ofClaims), ...ofNone].sort()).toEqual(fields.sort());
  });

  test.each(Object.entries(ofClaims))(
    "through `%s`, alone and next to its own claim",
    async (field, { many, part, fill }) => {
      const list = (...claims: Claim[]) => ({
        [field]: many ? claims.map((one) => fill(one)) : fill(claims[0] as Claim),
      });
      for (const what of Object.keys(forged()))
        for (const server of [stage.second, stage.server])
          for (const order of ["alone", "before its own", "behind its own", "beside its own in another field"]) {
            // The second server has not cached the session's own claim. A valid claim in a poll must not authorise the forged one beside
            // it.
            theirRun = claimOf(await stage.claimed(theirs, theirSession, "theirs/settle"));
            const claim = forged()[what] as Claim;
            const before = [await seen(ourRun.runId), await seen(nobody)];
            const request = {
              alone: () => list(claim),
              "before its own": () => (many ? list(claim, theirRun) : list(claim)),
              "behind its own": () => (many ? list(theirRun, claim) : list(claim)),
              "beside its own in another field": () => ({ reports: [ofClaims.reports.fill(theirRun)], ...list(claim) }),
            }[order] as () => object;
            const answer = await stage.poll(theirs, { session: theirSession, ...request() }, server);
            const about = answer.refused.filter((one) => one.part === part && isSame(one, claim));
            const which = `${field}, ${what}, ${order}`;
            expect(about, which).toHaveLength(1);
            expect(["CLAIM_FOREIGN", "RUN_UNKNOWN"], which).toContain(about[0]?.code);
            expect([answer.inputs, answer.secret], which).toEqual([undefined, undefined]);
            expect([await seen(ourRun.runId), await seen(nobody)], which).toEqual(before);
          }
    },
  );

  test("by requesting runs: it gets no run and no information of another namespace", async () => {
    const { runId } = await stage.server.enqueue("ours/settle");
    const [task] = await stage.rows("select id from $s.task where name = 'ours/settle'");
    const turn = { exceptTaskIds: [], leastPriority: 9, each: 5, afterTaskId: 0 };
    const fields: Partial<Record<Field, object>> = {
      want: { want: 9 },
      aheadMs: { want: 9, aheadMs: 10_000 },
      waitMs: { want: 9, waitMs: 100 },
      holds: { holds: [ourRun.fence, theirRun.fence] },
      turn: { turn },
      placesFor: { placesFor: [task?.id] },
      draining: { draining: true },
    };
    for (const [field, request] of Object.entries(fields)) {
      const answer = await stage.poll(theirs, { session: theirSession, ...request });
      expect(answer.runs.map(({ task }) => task).filter(isOurs), field).toEqual([]);
      expect(answer.recalls, field).toEqual([]);
      expect(answer.places ?? [], field).toEqual([]);
      if (field === "holds") expect(answer.lost).toEqual([ourRun.fence]);
    }
    expect(await stage.stateOf(runId)).toBe("ready");
    await stage.server.cancel(runId);
  });

  test("through a session: it cannot poll, end or succeed it, or join for its groups", async () => {
    const name = "thief";
    for (const [request, code] of [
      [{ session: ourSession, want: 1 }, "KEY_FORBIDDEN"],
      [{ session: ourSession, leave: true }, "KEY_FORBIDDEN"],
      [{ join: { name, former: ourSession } }, "KEY_FORBIDDEN"],
      [{ join: { name, groups: ["ours/gpu"] } }, "KEY_FORBIDDEN"],
    ] as const)
      expect((await stage.post(theirs, request)).body.code).toBe(code);
    await stage.poll(ours, { session: ourSession, reports: [{ ...ourRun, startedAgoMs: 1 }] });
    const joined = await stage.join(theirs, { tasks: ["ours/settle", "theirs/settle"] });
    const { runId } = await stage.server.enqueue("ours/settle");
    const { runs } = await stage.poll(theirs, { session: joined, want: 9 });
    expect(runs.map(({ task }) => task).filter(isOurs)).toEqual([]);
    expect(await stage.stateOf(runId)).toBe("ready");
    await stage.poll(theirs, { session: joined, leave: true });
    await stage.server.cancel(runId);
  });

  test("by spawning: a task of another namespace is answered like an unknown task", async () => {
    const told = async (task: string) => {
      const spawns = [{ ...theirRun, children: [{ task, key: "a" }] }];
      const { refused } = await stage.poll(theirs, { session: theirSession, spawns });
      return refused.map(({ code, message }) => [code, message.replaceAll(task, "TASK")]);
    };
    expect(await told("ours/settle")).toEqual(await told("ours/nothing"));
    await stage.task("theirs/apart", { group: "theirs/vault" });
    expect(await told("theirs/apart")).toEqual([["KEY_FORBIDDEN", expect.stringContaining("theirs/vault")]]);
  });

  test("the store checks again: log lines and spans of a claim of another session are omitted", async () => {
    const before = await seen(ourRun.runId);
    const nowMs = Date.now();
    for (const claim of Object.values(forged())) {
      const line = { attempt: 1, atMs: nowMs, level: "info" as const, message: "forged", fields: null };
      await stage.store.runs.writeLogs([{ ...claim, ...line }], nowMs, theirSession);
      await stage.store.runs.leaveSpans([{ ...claim, context }], nowMs, theirSession);
    }
    expect(await seen(ourRun.runId)).toEqual(before);
    expect(await stage.rows("select from $s.run_log where run_id = $1", [nobody])).toEqual([]);
    await stage.store.runs.leaveSpans([{ ...ourRun, context }], nowMs, ourSession);
    expect(await seen(ourRun.runId)).toMatchObject({ spans: [{ context }] });
  });
});
