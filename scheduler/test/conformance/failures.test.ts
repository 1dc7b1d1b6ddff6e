import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { releaseOf } from "../../src/task/release.ts";
import { defineTask } from "../../src/task/task.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { ApiStage } from "../support/api-stage.ts";
import { said } from "../support/remote-stage.ts";
import { everyPostgres } from "../support/servers.ts";
import { change, failing, openStage, type Stage, settlement } from "../support/store-stage.ts";

async function fail(stage: Stage, session: number, task: TaskRecord, messages: string[], endedMs: number) {
  await stage.store.runs.enqueue(
    messages.map(() => stage.write(task)),
    stage.nowMs,
  );
  const runs = await stage.claim(session, [task]);
  const ends = runs.map((run, at) => settlement(run, failing(messages[at] as string, "E"), endedMs));
  await stage.store.claims.settle(session, ends, endedMs);
  return runs.map(({ runId }) => runId);
}

describe.each(everyPostgres())("failed runs by reason, on $title", (server) => {
  let stage: Stage;
  let session: number;
  const release = releaseOf("2", [defineTask("released", {})]);
  beforeAll(async () => {
    stage = await openStage(server);
    session = await stage.session("worker");
  });
  afterAll(() => stage.close());

  const failures = async (given: { taskId?: number; sinceMs?: number; limit?: number; namespaces?: string[] } = {}) => {
    const { taskId = null, sinceMs = 0, limit = 100, namespaces = null } = given;
    return stage.store.deadLetters.failures({ taskId, sinceMs, limit, namespaces });
  };

  it("are read newest first, of one task or of all, since a time, also once they were dismissed", async () => {
    const [a, b] = [await stage.task("fails-a", { group: "fa" }), await stage.task("ours/fails-b", { group: "fb" })];
    const at = stage.nowMs;
    const [first] = await fail(stage, session, a, ["order 1 refused"], at);
    const [second] = await fail(stage, session, b, ["order 22 refused"], at + 10);
    const [third] = await fail(stage, session, a, ["disk full"], at + 20);
    const all = await failures();
    expect(all.failures.map(({ runId }) => runId)).toEqual([third, second, first]);
    expect(all.allSinceMs).toBe(0);
    expect(all.failures[1]?.fingerprint).toBe(all.failures[2]?.fingerprint);
    expect((await failures({ taskId: a.taskId })).failures.map(({ task }) => task)).toEqual(["fails-a", "fails-a"]);
    expect((await failures({ sinceMs: at + 5 })).failures).toHaveLength(2);
    expect((await failures({ namespaces: ["ours"] })).failures.map(({ runId }) => runId)).toEqual([second]);
    // Newer failures of other namespaces neither take the place of these, nor show in the time from which on the answer is complete.
    const [ours] = (await failures({ namespaces: ["ours"] })).failures;
    expect(await failures({ limit: 2, namespaces: ["ours"] })).toEqual({ failures: [ours], allSinceMs: 0 });
    const [fourth] = await fail(stage, session, b, ["order 4 refused"], at + 15);
    expect(await failures({ limit: 1, namespaces: ["ours"] })).toMatchObject({
      failures: [{ runId: fourth }],
      allSinceMs: at + 15,
    });
    await stage.rows("delete from $s.run_history where id = $1", [fourth]);
    await stage.rows("delete from $s.dead_letter where run_id = $1", [fourth]);
    expect((await failures({ limit: 2 })).allSinceMs).toBe(at + 10);
    await stage.rows("update $s.dead_letter set state = 2 where run_id = $1", [third]);
    expect((await failures()).failures).toHaveLength(3);
    const reasons = await stage.store.deadLetters.reasons([third as number, 10 ** 9]);
    expect([...reasons]).toEqual([[third, { code: "E", words: "disk full" }]]);
  });

  it("of a namespace: neither a busy task nor tasks that failed long ago hide the failures of the others", async () => {
    const many = Array.from({ length: 1_001 }, (_, n) => defineTask(`many/${n}`, {}));
    await stage.store.tasks.saveAll(many, change(stage.nowMs), { release, graceMs: 0 });
    const [busy, calm, rare] = [
      await stage.task("many/busy"),
      await stage.task("many/calm"),
      await stage.task("many/rare"),
    ];
    const at = stage.nowMs + 1_000;
    await fail(stage, session, calm, ["calm"], at);
    await fail(stage, session, rare, ["rare"], at + 1);
    for (let n = 0; n < 6; n++)
      await fail(
        stage,
        session,
        busy,
        Array.from({ length: 50 }, () => "busy"),
        at + 2 + n,
      );
    const tasks = async (limit: number) => {
      const { failures: found, allSinceMs } = await failures({ namespaces: ["many"], sinceMs: at, limit });
      const count = (name: string) => found.filter(({ task }) => task === name).length;
      return [count("many/busy"), count("many/calm"), count("many/rare"), allSinceMs];
    };
    await stage.rows(
      "insert into $s.tally_delta (task_id, failed) select id, 1 from $s.task where name like 'many/%' and id <> $1",
      [busy.taskId],
    );
    expect(await tasks(1_000), "failures from before the time do not count").toEqual([300, 1, 1, at]);
    // Each of the tasks has failed since then, so at first fewer failures of each task are read.
    await stage.rows(
      `insert into $s.run_history select (jsonb_populate_record(h, jsonb_build_object('id', 1e6 + t.id, 'task_id', t.id))).*
       from $s.run_history h, $s.task t where h.task_id = $1 and t.name ~ '^many/[0-9]'`,
      [calm.taskId],
    );
    expect(await tasks(2_000), "the busy task is read again").toEqual([300, 1, 1, at]);
    // A task with exactly as many failures as the limit hides none; the task with more failures than the limit hides some.
    expect((await tasks(300))[0]).toBe(300);
    expect(await tasks(250)).toEqual([250, 0, 0, at + 3]);
  });

  it("name the release of the worker, and when that was new", async () => {
    const definition = defineTask("released", { group: "released" });
    const task = await stage.store.tasks
      .saveAll([definition], change(stage.nowMs), { release, graceMs: 0 })
      .then(() => stage.store.tasks.byName("released"));
    const settings = { retentionMs: 1, horizonMs: 1, claimAheadMs: 1, release: release.name };
    const identity = { node: "of-release", role: "worker", host: "h", pid: 1, version: "0", timeoutMs: 6_000 } as const;
    const opened = await stage.store.sessions.open({ ...identity, settings }, stage.nowMs);
    if ("taken" in opened) throw new Error("the name is free");
    const [run] = await fail(stage, opened.sessionId, task, ["boom"], stage.nowMs + 30);
    const { failures: found } = await failures({ taskId: task.taskId });
    expect(found).toMatchObject([{ runId: run, release: release.name, releaseMs: Math.round(stage.nowMs) }]);
    expect((await stage.store.runs.find(run as number)).release).toBe(release.name);
  });
});

describe("the route of errors", () => {
  const stage = new ApiStage();
  beforeAll(() => stage.open());
  afterAll(() => stage.close());

  it("groups failures by reason, within the caller's namespaces", async () => {
    await stage.task("breaks");
    const admin = stage.client();
    const none = await admin.listErrors({});
    expect(none).toMatchObject({ groups: [], groupCount: 0 });
    expect(Math.round((Date.now() - Date.parse(none.from)) / 86_400_000)).toBe(7);
    await expect(admin.listErrors({ task: "none" })).rejects.toMatchObject({ code: "TASK_UNKNOWN" });
    const theirs = stage.clientOf(await stage.token("viewer", { where: ["theirs"] }));
    await expect(theirs.listErrors({ task: "breaks" })).rejects.toMatchObject({ code: "ACCESS_DENIED" });
    const key = await stage.key("w");
    const worker = await stage.join(key, { tasks: ["breaks"] });
    for (const message of ["order 1 refused", "order 2 refused", "disk full"]) {
      const run = await stage.claimed(key, worker, "breaks");
      const verdict = { outcome: "failed" as const, startedAgoMs: 5, error: { message } };
      await stage.poll(key, { session: worker, verdicts: [said(run, verdict)] });
    }
    const { groups, groupCount } = await admin.listErrors({ task: "breaks" });
    expect(groupCount).toBe(2);
    expect(groups).toMatchObject([
      { reason: { words: "order # refused" }, runs: 2, tasks: ["breaks"], taskCount: 1, broughtBy: null },
      { reason: { words: "disk full" }, runs: 1 },
    ]);
    expect(groups[0]?.trend).toEqual([...new Array(23).fill(0), 2]);
    expect((await theirs.listErrors({})).groups).toEqual([]);
  });
});
