import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { everyPostgres } from "../support/servers.ts";
import { openStage, type Stage, settlement, succeededVerdict } from "../support/store-stage.ts";

describe.each(everyPostgres())("sessions and terms on $title", (server) => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await openStage(server);
  });
  afterAll(() => stage.close());

  const identity = (node: string) => ({
    node,
    role: "node" as const,
    host: "h",
    pid: 7,
    version: "1",
    timeoutMs: 6_000,
  });

  it("assign a name to one live session, and to the next when that one has ended", async () => {
    const stores = [stage.store, await stage.another(), await stage.another()];
    const opened = await Promise.all(stores.map((store) => store.sessions.open(identity("atlas"), stage.nowMs)));
    const won = opened.filter((answer) => "sessionId" in answer) as { sessionId: number }[];
    expect(won).toHaveLength(1);
    const { sessionId } = won[0] as { sessionId: number };
    for (const answer of opened)
      if ("taken" in answer) expect(answer.taken).toMatchObject({ sessionId, node: "atlas", host: "h", pid: 7 });
    expect(await stage.store.sessions.end(sessionId, null, stage.nowMs, "bye")).toBe(true);
    const next = await stage.store.sessions.open(identity("atlas"), stage.nowMs);
    expect((next as { sessionId: number }).sessionId).toBeGreaterThan(sessionId);
  });

  it("end a session only while its heartbeat is the one the observer saw", async () => {
    const sessionId = await stage.session();
    await stage.store.sessions.beat(sessionId, stage.nowMs);
    expect(await stage.store.sessions.end(sessionId, 0, stage.nowMs, "seen too long ago")).toBe(false);
    expect((await stage.store.sessions.beat(sessionId, stage.nowMs)).alive).toBe(true);
    expect(await stage.store.sessions.end(sessionId, 2, stage.nowMs, "silent")).toBe(true);
    expect(await stage.store.sessions.end(sessionId, 2, stage.nowMs, "silent")).toBe(false);
    const pulse = await stage.store.sessions.beat(sessionId, stage.nowMs);
    expect(pulse.alive).toBe(false);
    expect(pulse.members.map((member) => member.sessionId)).not.toContain(sessionId);
  });

  it("a concurrent heartbeat and ending of a session: one of them wins", async () => {
    const other = await stage.another();
    for (let round = 0; round < 30; round++) {
      const sessionId = await stage.session();
      const [pulse, ended] = await Promise.all([
        stage.store.sessions.beat(sessionId, stage.nowMs),
        other.sessions.end(sessionId, 0, stage.nowMs, "silent"),
      ]);
      expect(pulse.alive, `round ${round}`).toBe(!ended);
    }
  });

  it("a heartbeat returns no members to a worker, and to a node those that rely on the store, or all", async () => {
    const { sessions } = stage.store;
    const [node, worker, shown] = [await stage.session(), await stage.session("worker"), await stage.session("worker")];
    await sessions.beat(shown, stage.nowMs, { witnessed: true });
    const seen = async (...beat: Parameters<typeof sessions.beat>) =>
      (await sessions.beat(...beat)).members.map(({ sessionId }) => sessionId);
    expect(await seen(worker, stage.nowMs)).toEqual([]);
    const some = await seen(node, stage.nowMs);
    expect([node, worker, shown].filter((id) => some.includes(id))).toEqual([node, worker]);
    expect(await seen(node, stage.nowMs, { everyone: true })).toContain(shown);
  });

  it("a heartbeat returns the next claimable run of the session's groups, whether the leader lives, and if limits exist", async () => {
    const { sessions } = stage.store;
    const open = async (node: string, groups: string[]) => {
      const identity = { node, role: "worker" as const, host: "h", pid: 1, version: "0", timeoutMs: 6_000, groups };
      const opened = await sessions.open(identity, stage.nowMs);
      return "sessionId" in opened ? opened.sessionId : Number.NaN;
    };
    const task = await stage.task("ready", { group: "pulse-group" });
    const [theirs, others] = [await open("has-group", ["pulse-group", "none"]), await open("has-none", ["none"])];
    expect((await sessions.beat(theirs, stage.nowMs)).nextReadyMs).toBeNull();
    await stage.enqueue(task, { dueMs: stage.nowMs + 50_000 });
    await stage.enqueue(task, { dueMs: stage.nowMs + 40_000, priority: 1 });
    expect((await sessions.beat(theirs, stage.nowMs)).nextReadyMs).toBe(stage.nowMs + 40_000);
    expect((await sessions.beat(others, stage.nowMs)).nextReadyMs).toBeNull();
    const leader = await stage.session();
    await stage.lead(leader);
    expect((await sessions.beat(theirs, stage.nowMs)).led).toBe(true);
    await sessions.end(leader, null, stage.nowMs, "silent");
    expect((await sessions.beat(theirs, stage.nowMs)).led).toBe(false);
    await stage.task("with-places", { overlap: "queue" });
    expect((await sessions.beat(theirs, stage.nowMs)).gated).toBe(true);
  });

  it("a heartbeat returns the store's time, the members, the next slot and sessions that left claims behind", async () => {
    const task = await stage.task("pulse");
    await stage.enqueue(task);
    const [me, gone] = [await stage.session(), await stage.session("worker")];
    const runs = await stage.claim(gone, [task]);
    await stage.store.sessions.end(gone, null, stage.nowMs + 5, "silent");
    const pulse = await stage.store.sessions.beat(me, stage.nowMs + 6);
    expect(Math.abs(pulse.storeMs - Date.now())).toBeLessThan(60_000);
    expect(pulse.members).toContainEqual(
      expect.objectContaining({ sessionId: me, node: expect.any(String), timeoutMs: 6_000 }),
    );
    expect(pulse.ended).toEqual([{ sessionId: gone, endedMs: stage.nowMs + 5 }]);
    expect(pulse.nextSlotMs).toBeNull();
    await stage.store.claims.settle(
      gone,
      runs.map((run) => settlement(run, succeededVerdict, stage.nowMs)),
      stage.nowMs,
    );
    expect((await stage.store.sessions.beat(me, stage.nowMs)).ended).toEqual([]);
  });

  it("elect one of many sessions, term after term, and keep their history", async () => {
    const stores = await Promise.all(Array.from({ length: 6 }, () => stage.another({ connectionsMax: 2 })));
    const nodes = await Promise.all(
      stores.map(async (store, i) => ({ store, name: `elector-${i}`, sessionId: await stage.session() })),
    );
    const before = (await stage.store.sessions.members()).leadership.term;
    const winners: number[] = [];
    for (let round = 0; round < 25; round++) {
      const { leadership } = await stage.store.sessions.members();
      const won = await Promise.all(
        nodes.map(({ store, name, sessionId }) =>
          store.sessions.campaign(sessionId, name, leadership, stage.nowMs + round),
        ),
      );
      expect(won.filter((term) => term !== null)).toEqual([before + round + 1]);
      const winner = won.findIndex((term) => term !== null);
      winners.push(winner);
      // While the leader's session is alive, no other session can win, even with the right view of the leadership.
      const held = (await stage.store.sessions.members()).leadership;
      const again = await Promise.all(
        nodes.map(({ store, name, sessionId }) => store.sessions.campaign(sessionId, name, held, stage.nowMs)),
      );
      expect(again).toEqual(nodes.map(() => null));
      if (round % 2 === 0) {
        await stage.store.sessions.resign(held.term, stage.nowMs + round, "resigned");
      } else {
        const node = nodes[winner] as (typeof nodes)[number];
        await stage.store.sessions.end(node.sessionId, null, stage.nowMs + round, "silent");
        node.sessionId = await stage.session();
      }
    }
    const terms = await stage.store.sessions.terms(25);
    expect(terms.map(({ term }) => term)).toEqual(Array.from({ length: 25 }, (_, i) => before + 25 - i));
    expect(terms.map(({ node }) => node).toReversed()).toEqual(winners.map((winner) => `elector-${winner}`));
    for (const [i, { endedWhy, endedMs }] of terms.toReversed().entries()) {
      expect(endedMs, `term ${i}`).not.toBeNull();
      expect(endedWhy).toBe(i % 2 === 0 ? "resigned" : "silent");
    }
  });

  it("resigning an old term does not affect the new one, and an ended session cannot be a candidate", async () => {
    const [a, b] = [await stage.session(), await stage.session()];
    const old = await stage.lead(a);
    const term = await stage.lead(b);
    await stage.store.sessions.resign(old, stage.nowMs, "late");
    expect((await stage.store.sessions.members()).leadership).toEqual({ term, sessionId: b });
    await stage.store.sessions.resign(term, stage.nowMs, "done");
    expect(
      await stage.store.sessions.campaign(a, "a", { term, sessionId: null }, stage.nowMs),
      "a's session is over",
    ).toBeNull();
    const late = await stage.session();
    for (const observed of [old, term + 1]) {
      const campaign = stage.store.sessions.campaign(late, "late", { term: observed, sessionId: null }, stage.nowMs);
      expect(await campaign, "what it saw is not the truth").toBeNull();
    }
    expect((await stage.store.sessions.members()).leadership).toEqual({ term, sessionId: null });
  });
});
