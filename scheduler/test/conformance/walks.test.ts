import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../../src/api/client.ts";
import type { Given } from "../../src/api/contract.ts";
import { seeded } from "../../src/base/random.ts";
import type { ClaimedRun, Verdict } from "../../src/run/claim-store.ts";
import { defineTask } from "../../src/task/task.ts";
import { ApiStage } from "../support/api-stage.ts";
import { change, settlement, succeededVerdict } from "../support/store-stage.ts";

/** Tests that read lists page by page through their cursors while the listed items change. */
const stage = new ApiStage();
let api: Client;
let session = 0;
beforeAll(async () => {
  await stage.open();
  api = stage.client();
  const node = `w-${randomBytes(3).toString("hex")}`;
  const identity = { node, role: "worker" as const, host: "here", pid: 1, version: "0", timeoutMs: 3_600_000 };
  const opened = await stage.store.sessions.open(identity, Date.now());
  if ("taken" in opened) throw new Error("the name is taken");
  session = opened.sessionId;
});
afterAll(() => stage.close());

const begun = 1_200;
const failed: Verdict = { kind: "ended", outcome: "failed", result: null, error: '{"message":"no"}' };
/** Returns a verdict after which the run waits for its next attempt, and so moves behind all other runs in the list. */
const again = (): Verdict => ({ kind: "retry", dueMs: Date.now() - 1, error: '{"message":"no"}' });

describe("paging through the runs while a thousand of them end", () => {
  const walks: [string, Given<"listRuns">][] = [
    ["of all", { limit: 50 }],
    ["of a task", { task: "walked-1", limit: 70 }],
    ["of a task by all states", { task: "walked-2", limit: 110, state: ["ready", "claimed", "succeeded", "failed"] }],
    ["of a time", { since: "2020-01-01T00:00:00Z", until: "2100-01-01T00:00:00Z", limit: 200 }],
  ];

  test.each(walks)("%s lists none twice and all that existed", async (_, given) => {
    const random = seeded(7);
    const name = given.task ?? `walked-${randomBytes(3).toString("hex")}`;
    const { record } = await stage.store.tasks.save(defineTask(name, { group: name }), null, change(Date.now()));
    const enqueue = async (count: number, agoMs: number) => {
      const write = { taskId: record.taskId, payload: null, key: null, priority: null, source: "enqueue" as const };
      const writes = Array.from({ length: count }, (_, i) => ({ ...write, dueMs: Date.now() - agoMs + i }));
      return (await stage.store.runs.enqueue(writes, Date.now())).map(({ runId }) => runId);
    };
    const there = await enqueue(begun, 600_000);
    const claim = async (limit: number) => {
      const nowMs = Date.now();
      const request = {
        sessionId: session,
        groupIds: [record.groupId],
        exceptTaskIds: [],
        untilMs: nowMs,
        limit,
        nowMs,
      };
      return (await stage.store.claims.claim(request)).runs;
    };
    const end = (runs: ClaimedRun[], verdict: () => Verdict) => {
      // Half of the verdicts arrive up to 300 s after the end of their attempt.
      const lateMs = () => (random.next() < 0.5 ? 0 : Math.floor(random.next() * 300_000));
      const verdicts = runs.map((run) => settlement(run, verdict(), Date.now() - lateMs()));
      return stage.store.claims.settle(session, verdicts, Date.now());
    };
    await end(await claim(100), () => succeededVerdict);
    let claimed = await claim(begun);
    let left = 1_000;
    const seen: number[] = [];
    for (let cursor: string | undefined, pages = 0; pages < 100; pages++) {
      const { items, next } = await api.listRuns({ ...given, ...(cursor === undefined ? {} : { cursor }) });
      seen.push(...items.filter(({ task }) => task === name).map(({ run }) => run));
      if (next === null) break;
      cursor = next;
      if (left <= 0) continue;
      const drawn = new Set(claimed.filter(() => random.next() < 0.12));
      claimed = claimed.filter((run) => !drawn.has(run));
      await end([...drawn], () => (random.next() < 0.8 ? (random.next() < 0.5 ? succeededVerdict : failed) : again()));
      left -= drawn.size;
      await enqueue(5, 600_000);
      claimed.push(...(await claim(60)));
    }
    expect(new Set(seen).size, "none is seen twice").toBe(seen.length);
    expect(
      there.filter((run) => !seen.includes(run)),
      "those that were there",
    ).toEqual([]);
    expect(left).toBeLessThan(300);
  });
});

test("a cursor of an older format is refused with a hint", async () => {
  const before = Buffer.from(JSON.stringify(["live", 5, 5])).toString("base64url");
  for (const cursor of [before, Buffer.from(JSON.stringify(["live", 5, 5, "x"])).toString("base64url")])
    await expect(api.listRuns({ cursor })).rejects.toMatchObject({
      code: "REQUEST_INVALID",
      hint: expect.stringContaining("begin with the first page"),
    });
});

test("paging through the open alarms lists each once while some end, open, and are raised again", async () => {
  const at = Date.now();
  const open = (subjects: string[], openedMs: number) =>
    stage.rows(
      `insert into $s.alarm (rule, subject, opened_ms, last_ms, count, text, succeeded, held)
       select 'late', subject, $2, $2, 1, '', 0, 0 from unnest($1::text[]) as subject`,
      [subjects, openedMs],
    );
  const there = Array.from({ length: 30 }, (_, i) => `there-${i}`);
  const passing = Array.from({ length: 30 }, (_, i) => `passing-${i}`);
  for (const [i, subject] of there.entries()) await open([subject, passing[i] as string], at - i);
  const seen: (string | null)[] = [];
  for (let cursor: string | undefined, page = 0; ; page++) {
    const { items, next } = await api.listAlarms({ limit: 7, ...(cursor === undefined ? {} : { cursor }) });
    seen.push(...items.map(({ task }) => task));
    if (next === null) break;
    cursor = next;
    const found = [there[29 - page], there[page]];
    await stage.rows("update $s.alarm set last_ms = $2 where subject = any($1)", [found, at + page]);
    await stage.rows("update $s.alarm set cleared_ms = $2 where subject = any($1)", [
      passing.slice(3 * page, 3 * page + 3),
      at,
    ]);
    await open([`new-${page}`], at + 1 + page);
  }
  expect(new Set(seen).size, "none is seen twice").toBe(seen.length);
  expect(
    there.filter((task) => !seen.includes(task)),
    "those that were there",
  ).toEqual([]);
});
