import { afterAll, beforeAll, describe, expect, test } from "vitest";
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
  await stage.task("echo");
  await stage.task("patient", { grace: "10m" });
});
afterAll(() => stage.close());

describe("several servers behind one address", () => {
  test("a claim that another server ended is forgotten, and hides no claim whose answer was lost", async () => {
    const session = await stage.join(key);
    const run = await stage.claimed(key, session);
    await stage.poll(key, { session, verdicts: [said(run)] }, stage.second);
    // The store now has as many claims of the session as the first server has cached, but a different one.
    const runId = await stage.claimedUnheard(session);
    const given: number[] = [];
    await until("it is given", async () => {
      const { runs } = await stage.poll(key, { session, want: 1, waitMs: 1_000 });
      given.push(...runs.map((one) => one.runId));
      return given.length > 0;
    });
    expect(given).toEqual([runId]);
    await stage.poll(key, { session, leave: true });
  });

  test("a verdict that another server applied can be repeated to the claiming server, and is not refused", async () => {
    const session = await stage.join(key);
    for (const outcome of ["succeeded", "failed", "cancelled", "released"]) {
      const run = await stage.claimed(key, session);
      const verdicts = [said(run, { outcome })];
      for (const server of [stage.second, stage.server])
        expect([outcome, (await stage.poll(key, { session, verdicts }, server)).refused]).toEqual([outcome, []]);
      expect(await stage.rows("select * from $s.late_result where run_id = $1", [run.runId])).toEqual([]);
      if (outcome === "released") await stage.server.cancel(run.runId);
    }
    await stage.poll(key, { session, leave: true });
  });

  test("a claim that its worker reports on is not returned to it again", async () => {
    const session = await stage.join(key);
    await stage.poll(key, { session }, stage.second);
    const run = await stage.claimed(key, session);
    const { runId, fence } = run;
    await stage.poll(key, { session, reports: [{ runId, fence, startedAgoMs: 0 }] }, stage.second);
    // These polls take longer together than two heartbeats of the second server.
    for (let polls = 0; polls < 4; polls++)
      expect((await stage.poll(key, { session, want: 1, waitMs: 2_000 }, stage.second)).runs).toEqual([]);
    await stage.poll(key, { session, verdicts: [said(run)], leave: true }, stage.second);
    expect(await stage.stateOf(runId)).toBe("succeeded");
  });
});

describe("a start that a worker tells another server than the one that gave the claim", () => {
  test.each([
    ["has read the session before", true],
    ["reads the session only then", false],
  ])(
    "is cut off at the claim, and not at the moment when that server learns of it, if it %s",
    async (_, isAttached) => {
      const session = await stage.join(key);
      if (isAttached) await stage.poll(key, { session }, stage.second);
      const took = async (startedAgoMs: number) => {
        const run = await stage.claimed(key, session);
        await stage.rows("update $s.run set claimed_ms = claimed_ms - 60000 where id = $1", [run.runId]);
        await stage.poll(key, { session, verdicts: [said(run, { outcome: "succeeded", startedAgoMs })] }, stage.second);
        const [row] = await stage.rows<{ ran: number; waited: number }>(
          "select ended_ms - started_ms as ran, started_ms - claimed_ms as waited from $s.run_history where id = $1",
          [run.runId],
        );
        return row;
      };
      expect((await took(30_000))?.ran).toBe(30_000);
      expect((await took(90_000))?.waited).toBe(0);
      await stage.poll(key, { session, leave: true });
    },
  );
});

describe("a malicious client with a key", () => {
  test("cannot take over claims of a process with the store", async () => {
    const node = await stage.rows<{ id: number }>(
      "select id from $s.session where key_id is null and ended_ms is null order by id limit 1",
    );
    const former = node[0]?.id as number;
    const { runId } = await stage.server.enqueue("patient");
    await stage.rows(
      "update $s.run set state = 3, session_id = $2, fence = nextval('$s.fence'), claimed_ms = 1, attempt = 1 where id = $1",
      [runId, former],
    );
    const answer = await stage.poll(key, { join: { name: "thief", former }, holds: [] });
    expect(answer.runs).toEqual([]);
    const [row] = await stage.rows<{ session_id: number }>("select session_id from $s.run where id = $1", [runId]);
    expect(row?.session_id).toBe(former);
  });

  test("cannot keep another key's session alive", async () => {
    const session = await stage.join(key, { timeoutMs: 1_500 });
    const beats = async () =>
      (await stage.rows<{ beat: number }>("select beat from $s.session where id = $1", [session]))[0]?.beat;
    const before = await beats();
    for (const body of [{ session }, { join: { name: "rogue", former: session } }]) {
      const { status, body: told } = await stage.post(other, body, { server: stage.second });
      expect([status, told.code]).toEqual([403, "KEY_FORBIDDEN"]);
    }
    expect(await beats()).toBe(before);
  });
});

describe("values that cannot be stored", () => {
  test("are refused separately, and the verdict next to them is applied", async () => {
    const session = await stage.join(key);
    const run = await stage.claimed(key, session);
    const { runId, fence } = run;
    const day = 86_400_000;
    const { refused } = await stage.poll(key, {
      session,
      verdicts: [said(run, { outcome: "succeeded", endedAgoMs: 300 * day })],
      reports: [{ runId, fence, startedAgoMs: 5, progress: { text: "\u0000" } }],
      logs: [
        { runId, fence, message: "odd", fields: { text: "\ud800" } },
        { runId, fence, message: "old", agoMs: 300 * day },
      ],
    });
    expect(refused.map(({ part, code }) => [part, code])).toEqual([
      ["report", expect.stringMatching(/^PAYLOAD_/)],
      ["log", expect.stringMatching(/^PAYLOAD_/)],
    ]);
    await until("it ended", async () => (await stage.stateOf(runId)) === "succeeded");
    const lines = await stage.store.runs.logs(runId, 9);
    expect(lines.map(({ message, fields }) => [message, fields])).toEqual([
      ["old", null],
      ["odd", null],
    ]);
  });

  test("a verdict on another server's claim ends it, however long ago its stated end time is", async () => {
    const session = await stage.join(key);
    const { runId, fence } = await stage.claimed(key, session);
    await stage.poll(key, { session }, stage.second);
    const verdict = { runId, fence, outcome: "succeeded", endedAgoMs: 300 * 86_400_000 };
    expect((await stage.poll(key, { session, verdicts: [verdict], leave: true }, stage.second)).refused).toEqual([]);
    expect(await stage.stateOf(runId)).toBe("succeeded");
  });
});
