import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ClaimedRun, Verdict } from "../../src/run/claim-store.ts";
import type { TaskOptions } from "../../src/task/task.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import {
  type AddressEvent,
  type AddressState,
  addressEvents,
  addressStates,
  addressTable,
} from "../oracle/route-table.ts";
import { everyPostgres } from "../support/servers.ts";
import { openStage, type Stage, settlement, succeededVerdict } from "../support/store-stage.ts";

describe.each(everyPostgres())("addressed runs on $title", (server) => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await openStage(server);
  });
  afterAll(() => stage.close());

  let made = 0;
  const routed = (options: TaskOptions = { route: "random" }) =>
    stage.task(`r${++made}`, { group: `g${made}`, grace: 0, ...options });
  let turns = 0;
  const address = async (task: TaskRecord, runId: number, sessionId: number) => {
    const write = { runId, taskId: task.taskId, sessionId, node: `n${sessionId}`, turn: ++turns };
    return (await stage.store.routes.address([write], stage.nowMs)).addressed;
  };
  const claim = (task: TaskRecord, sessionId: number) =>
    stage.store.claims.claim({
      sessionId,
      groupIds: [-sessionId, task.groupId],
      exceptTaskIds: [],
      untilMs: stage.nowMs,
      limit: 100,
      nowMs: stage.nowMs,
    });
  const stateOf = async (runId: number): Promise<AddressState> => {
    const { state, group } = await stage.one("select state, group_id as group from $s.run where id = $1", [runId]);
    return state === 3 ? "claimed" : (group as number) < 0 ? "addressed" : "unaddressed";
  };

  describe.each(addressStates)("%s", (state) => {
    it.each(addressEvents)("%s", async (event: AddressEvent) => {
      const task = await routed();
      const runId = await stage.enqueue(task);
      const [addressee, other] = [await stage.session("worker"), await stage.session("worker")];
      let run: ClaimedRun | undefined;
      if (state !== "unaddressed") expect(await address(task, runId, addressee)).toEqual(new Set([runId]));
      if (state === "claimed") [run] = (await claim(task, addressee)).runs;
      expect(await stateOf(runId)).toBe(state);
      const verdict = (kind: "released" | "retry") =>
        stage.store.claims.settle(
          addressee,
          [
            settlement(
              run ?? ({ runId, fence: 1, attempt: 1, taskId: task.taskId, linked: false } as ClaimedRun),
              kind === "retry" ? { kind, dueMs: stage.nowMs, error: null } : { kind },
              stage.nowMs,
            ),
          ],
          stage.nowMs,
        );
      switch (event) {
        case "is addressed":
          await address(task, runId, state === "unaddressed" ? addressee : other);
          break;
        case "its addressee claims":
          await claim(task, addressee);
          break;
        case "another claims":
          expect((await claim(task, other)).runs).toEqual([]);
          break;
        case "its addressee ends":
          await stage.store.sessions.end(addressee, null, stage.nowMs, "silent");
          await stage.store.routes.withdraw(0);
          break;
        case "its addressee drains":
          await stage.store.routes.drain(addressee);
          break;
        case "is late":
          await stage.store.routes.withdraw(stage.nowMs + 1);
          break;
        case "is released":
          await verdict("released");
          break;
        case "retries":
          await verdict("retry");
          break;
        case "its task is edited":
          await stage.task(task.name, { group: task.definition.group, grace: 0, route: "round-robin" });
      }
      expect(await stateOf(runId)).toBe(addressTable[state][event] ?? state);
    });
  });

  it("a run its addressee has no slot for goes to another worker, even from behind many that must wait", async () => {
    const addressee = await stage.session("worker");
    const pinned = await routed({ route: { pin: "n" } });
    const movable = await routed();
    const theirs = await stage.store.runs.enqueue(
      Array.from({ length: 60 }, () => stage.write(pinned, { dueMs: stage.nowMs - 10 })),
      stage.nowMs,
    );
    for (const { runId } of theirs) await address(pinned, runId, addressee);
    const runId = await stage.enqueue(movable);
    await address(movable, runId, addressee);
    await stage.store.routes.withdraw(stage.nowMs + 1);
    expect(await stateOf(runId)).toBe("unaddressed");
    expect(await stateOf(theirs[0]?.runId as number)).toBe("addressed");
    await stage.rows("delete from $s.run where task_id = any($1)", [[pinned.taskId, movable.taskId]]);
  });

  it("claimed or withdrawn, never both: a claim races a withdrawal, many rounds", async () => {
    const task = await routed();
    const another = await stage.another();
    const rounds = 60;
    let [claimed, withdrawn] = [0, 0];
    for (let round = 0; round < rounds; round++) {
      const addressee = await stage.session("worker");
      const made = await stage.store.runs.enqueue(
        [stage.write(task), stage.write(task), stage.write(task)],
        stage.nowMs,
      );
      const ids = made.map(({ runId }) => runId);
      await stage.store.routes.address(
        ids.map((runId) => ({ runId, taskId: task.taskId, sessionId: addressee, node: "n", turn: ++turns })),
        stage.nowMs,
      );
      const late = async () => {
        if (round % 2 === 0) await new Promise((resolve) => setTimeout(resolve, (round / 2) % 3));
        return round % 3 === 0 ? another.routes.drain(addressee) : another.routes.withdraw(stage.nowMs + 1);
      };
      const [{ runs }] = await Promise.all([claim(task, addressee), late()]);
      await stage.store.routes.withdraw(stage.nowMs + 1);
      const rows = await stage.rows("select id, state, group_id, attempt from $s.run where task_id = $1", [
        task.taskId,
      ]);
      expect(rows).toHaveLength(3);
      for (const row of rows) {
        const mine = runs.some(({ runId }) => runId === row.id);
        expect(row.state, "claimed by whoever was told so").toBe(mine ? 3 : 2);
        expect(row.attempt).toBe(mine ? 1 : 0);
        if (!mine) expect(row.group_id, "to be addressed again").toBe(0);
      }
      claimed += runs.length;
      withdrawn += 3 - runs.length;
      await stage.store.claims.settle(
        addressee,
        runs.map((run) => settlement(run, succeededVerdict, stage.nowMs)),
        stage.nowMs,
      );
      for (const { runId } of made)
        if (!runs.some((run) => run.runId === runId)) await stage.store.runs.cancel(runId, "", stage.nowMs);
    }
    expect(claimed + withdrawn).toBe(rounds * 3);
    expect(Math.min(claimed, withdrawn), `both happened: ${claimed} claimed, ${withdrawn} withdrawn`).toBeGreaterThan(
      0,
    );
  });

  it("no run is addressed to an ended or draining session, even if both happen at once", async () => {
    const task = await routed();
    const runId = await stage.enqueue(task);
    const gone = await stage.session("worker");
    await stage.store.sessions.end(gone, null, stage.nowMs, "silent");
    expect(await address(task, runId, gone)).toEqual(new Set());
    for (let round = 0; round < 30; round++) {
      const leaving = await stage.session("worker");
      await Promise.all([address(task, runId, leaving), stage.store.routes.drain(leaving)]);
      expect(await stateOf(runId)).toBe("unaddressed");
    }
  });

  it("routing choices based on an outdated turn are refused as a whole, so that they are repeated", async () => {
    const task = await routed({ route: "round-robin" });
    const addressee = await stage.session("worker");
    const runIds = [await stage.enqueue(task), await stage.enqueue(task), await stage.enqueue(task)];
    const choice = (runId: number, turn: number) => ({
      runId,
      taskId: task.taskId,
      sessionId: addressee,
      node: "n",
      turn,
    });
    const [first, second, third] = runIds as [number, number, number];
    const none = { addressed: new Set(), overtaken: new Set([task.taskId]) };
    expect((await stage.store.routes.address([choice(first, 1), choice(second, 2)], stage.nowMs)).addressed.size).toBe(
      2,
    );
    expect(await stage.store.routes.address([choice(third, 2)], stage.nowMs)).toEqual(none);
    expect(await stage.store.routes.address([choice(second, 2), choice(third, 3)], stage.nowMs)).toEqual(none);
    expect(await stateOf(third)).toBe("unaddressed");
    const last = await stage.store.routes.address([choice(third, 3)], stage.nowMs);
    expect(last).toEqual({ addressed: new Set([third]), overtaken: new Set() });
  });

  it("pinned, hashed and sticky runs wait for their worker, however late; other runs go to another worker", async () => {
    const addressee = await stage.session("worker");
    for (const [route, back] of [
      [{ pin: "x" }, false],
      [{ hash: "key" }, false],
      ["sticky", false],
      ["round-robin", true],
      ["least-loaded", true],
    ] as const) {
      const task = await routed({ route });
      const runId = await stage.enqueue(task);
      await address(task, runId, addressee);
      await stage.store.routes.withdraw(stage.nowMs + 1);
      expect(await stateOf(runId), JSON.stringify(route)).toBe(back ? "unaddressed" : "addressed");
    }
  });

  it("every shard has the inputs and the root of the whole run, and continues as that shard", async () => {
    const session = await stage.session("worker");
    const first = await stage.task("whole", { group: "whole" });
    const task = await routed({ route: { shards: 3 }, after: "whole" });
    const settle = (run: ClaimedRun, verdict: Verdict) =>
      stage.store.claims.settle(session, [settlement(run, verdict, stage.nowMs)], stage.nowMs);
    const claimed = async () => {
      await stage.rows("update $s.run set group_id = $2 where task_id = $1", [task.taskId, task.groupId]);
      return stage.claim(session, [task]);
    };
    const before = await stage.enqueue(first);
    await settle((await stage.claim(session, [first]))[0] as ClaimedRun, succeededVerdict);
    const { id } = await stage.one("select id from $s.run where task_id = $1", [task.taskId]);
    await stage.store.routes.split(id as number, 3, null);
    const parts = await claimed();
    for (const { runId } of parts) expect(await stage.store.flow.inputs({ runId })).toMatchObject([{ runId: before }]);
    const origins = await stage.rows("select origin from $s.run where task_id = $1", [task.taskId]);
    expect(origins).toEqual([1, 2, 3].map(() => ({ origin: before })));
    const onward = { kind: "continue", payload: null, state: null } as const;
    const goesOn = { ...succeededVerdict, onward } as Verdict;
    await settle(parts.find(({ shard }) => shard?.[0] === 1) as ClaimedRun, goesOn);
    expect(await claimed()).toMatchObject([{ shard: [1, 3] }]);
  });

  it("a join waits for every shard of a child", async () => {
    const session = await stage.session("worker");
    const parent = await stage.task("splits", { group: "splits" });
    const join = await stage.task("joins", { group: "joins" });
    const task = await routed({ route: { shards: 3 } });
    const settle = (run: ClaimedRun | undefined, verdict: Verdict = succeededVerdict) =>
      stage.store.claims.settle(session, [settlement(run as ClaimedRun, verdict, stage.nowMs)], stage.nowMs);
    await stage.enqueue(parent);
    const [run] = (await stage.claim(session, [parent])) as [ClaimedRun];
    const [child] = await stage.store.flow.spawn(run, [{ taskId: task.taskId, payload: null, key: "c" }], stage.nowMs);
    await stage.store.routes.split(child?.runId as number, 3, null);
    const onward = { kind: "join", taskId: join.taskId, payload: null } as const;
    await settle(run, { ...succeededVerdict, onward } as Verdict);
    await stage.rows("update $s.run set group_id = $2 where task_id = $1", [task.taskId, task.groupId]);
    const parts = await stage.claim(session, [task]);
    expect(parts).toHaveLength(3);
    for (const part of parts) {
      expect(await stage.claim(session, [join])).toEqual([]);
      await settle(part);
    }
    const [joining] = (await stage.claim(session, [join])) as [ClaimedRun];
    expect(await stage.store.flow.inputs({ runId: joining.runId })).toMatchObject([{ key: "c", runId: child?.runId }]);
  });

  it("a run is split once: its shards are separate runs, each with its index", async () => {
    const task = await routed({ route: { shards: 3 } });
    const runId = await stage.enqueue(task, { payload: '{"a":1}', key: "once" });
    await stage.store.routes.split(runId, 3, null);
    await stage.store.routes.split(runId, 3, null);
    const { runs } = await stage.store.routes.view(stage.nowMs, 100, [], 0);
    const parts = runs.filter(({ taskId }) => taskId === task.taskId);
    expect(parts.map(({ shard }) => shard)).toEqual([
      [0, 3],
      [1, 3],
      [2, 3],
    ]);
    const [one, two] = [await stage.session("worker"), await stage.session("worker")];
    await address(task, parts[0]?.runId ?? 0, one);
    await address(task, parts[1]?.runId ?? 0, two);
    await address(task, parts[2]?.runId ?? 0, one);
    const claimed = [...(await claim(task, one)).runs, ...(await claim(task, two)).runs];
    expect(claimed.map(({ payload, shard }) => ({ payload, shard }))).toEqual(
      [0, 2, 1].map((part) => ({ payload: { a: 1 }, shard: [part, 3] })),
    );
  });

  it("unclaimed shards are spread again when workers join", async () => {
    const task = await routed({ route: { shards: 4 } });
    const runId = await stage.enqueue(task);
    await stage.store.routes.split(runId, 4, null);
    const one = await stage.session("worker");
    const parts = (await stage.store.routes.view(stage.nowMs, 100, [], 0)).runs.filter(
      ({ taskId }) => taskId === task.taskId,
    );
    for (const part of parts) await address(task, part.runId, one);
    const mine = (await claim(task, one)).runs.slice(0, 1);
    expect(mine).toHaveLength(1);
    const left = (await stage.store.claims.heldBy(one)).filter(({ runId: id }) => id !== mine[0]?.runId);
    await stage.store.claims.settle(
      one,
      left.map((run) => settlement(run, { kind: "released" }, stage.nowMs)),
      stage.nowMs,
    );
    for (const { runId } of left) await address(task, runId, one);
    expect(await stage.store.routes.spread()).toBe(3);
    expect(await stateOf(mine[0]?.runId as number)).toBe("claimed");
  });
});
