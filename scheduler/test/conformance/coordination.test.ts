import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { CarillonError } from "../../src/base/errors.ts";
import type { Membership } from "../../src/cluster/membership.ts";
import { joinCluster } from "../../src/coordination/membership.ts";
import type { Store } from "../../src/store/store.ts";
import { StoreClock } from "../../src/store/store-clock.ts";
import { CallMeter } from "../support/call-meter.ts";
import { everyPostgres } from "../support/servers.ts";
import { openStage, recordingLog, type Stage, until } from "../support/store-stage.ts";
import { VirtualClock } from "../support/virtual-clock.ts";

const timeoutMs = 6_000;
const beatMs = 3_000;
/** The value in `joinCluster`: a node trusts its session until this many ms before the timeout. */
const marginMs = 500;

describe.each(everyPostgres())("membership on $title", (server) => {
  let stage: Stage;
  const nodes: Node[] = [];
  beforeAll(async () => {
    stage = await openStage(server);
  });
  afterEach(async () => {
    for (const node of nodes.splice(0)) {
      node.cut = false;
      await node.membership.leave("the test is over");
    }
  });
  afterAll(() => stage.close());

  /** One node with its own virtual clock, and a connection to the real store that a test can cut. */
  class Node {
    readonly clock = new VirtualClock(stage.nowMs);
    readonly log = recordingLog();
    readonly rejoins: [number, number][] = [];
    readonly terms: (number | null)[] = [];
    cut = false;
    /** For this many further heartbeats, the store applies the heartbeat but the reply is lost. */
    loseReplies = 0;
    beats = 0;
    membership!: Membership;
    readonly #meter = new CallMeter();

    async join(name: string): Promise<this> {
      const { sessions } = stage.store;
      // The store's clock follows this node's virtual clock, so that advancing it does not look like a clock step.
      const store = this.#meter.over({
        ...stage.store,
        clock: async () => ({ ms: this.clock.wall(), shiftMs: 0, number: 0 }),
        sessions: {
          ...sessions,
          beat: async (sessionId: number, nowMs: number) => {
            this.beats++;
            if (this.cut) throw new CarillonError("STORE_UNREACHABLE", "cut");
            const pulse = { ...(await sessions.beat(sessionId, nowMs)), storeMs: this.clock.wall() };
            if (this.loseReplies > 0) {
              this.loseReplies--;
              throw new CarillonError("STORE_UNREACHABLE", "the reply was lost");
            }
            return pulse;
          },
        },
      } satisfies Store);
      const identity = { node: name, role: "node" as const, host: "here", pid: process.pid, version: "0", timeoutMs };
      const storeClock = new StoreClock(this.clock);
      this.membership = await joinCluster({
        store,
        clock: this.clock,
        storeClock,
        identity,
        beatMs,
        log: this.log.log,
      });
      this.membership.onRejoin((lost, next) => this.rejoins.push([lost, next]));
      this.membership.onLeadership((term) => this.terms.push(term));
      nodes.push(this);
      return this;
    }

    /** Advances this node's clock, and waits until its heartbeats have settled. */
    async pass(ms: number): Promise<void> {
      this.clock.advance(ms);
      await this.quiet();
    }

    /** Waits until no call to the store is under way. */
    async quiet(): Promise<void> {
      await this.#meter.rest();
    }
  }
  const join = (name: string) => new Node().join(name);
  const alive = async () => (await stage.store.sessions.members()).members.map(({ node }) => node).sort();

  it("has one leader, and elects the next at once when it leaves", async () => {
    const a = await join("a");
    const b = await join("b");
    await b.quiet();
    expect(a.membership.term()).not.toBeNull();
    expect(b.membership.term()).toBeNull();
    const first = a.membership.term() as number;
    await a.membership.leave("stopped");
    expect(a.membership.term()).toBeNull();
    expect(await alive()).toEqual(["b"]);
    b.membership.refresh();
    await b.quiet();
    expect(b.membership.term()).toBe(first + 1);
    expect(await stage.store.sessions.terms(2)).toMatchObject([
      { term: first + 1, node: "b", endedMs: null },
      { term: first, node: "a", endedWhy: "stopped" },
    ]);
  });

  it("declares a silent member dead after its timeout by the observer's clock, not before", async () => {
    const a = await join("a");
    const b = await join("b");
    await b.quiet();
    await b.pass(beatMs);
    expect(await alive()).toEqual(["a", "b"]);
    await b.pass(timeoutMs - beatMs - 1);
    expect(await alive()).toEqual(["a", "b"]);
    expect(b.membership.term()).toBeNull();
    await b.pass(1);
    await until("the silent one is buried", async () => (await alive()).join() === "b");
    await b.quiet();
    expect(b.membership.term()).not.toBeNull();
    const [, former] = await stage.store.sessions.terms(2);
    expect(former).toMatchObject({ node: "a", endedWhy: expect.stringMatching(/^silent for 6000 ms, seen by b$/) });
    a.cut = true;
  });

  it("does not send heartbeats more often after the coordination provider lists a member counted as silent", async () => {
    const a = await join("a");
    const b = await join("b");
    await b.quiet();
    await b.pass(beatMs); // `b` has seen no heartbeat of `a` for a while
    await stage.store.sessions.beat(a.membership.sessionId, stage.nowMs, { witnessed: true });
    await b.pass(timeoutMs - beatMs);
    await b.pass(timeoutMs);
    const before = b.beats;
    for (let i = 0; i < 10; i++) await b.pass(2);
    expect(b.beats - before).toBeLessThan(3);
    expect(await alive()).toEqual(["a", "b"]);
    a.cut = true;
  });

  it("counts a leader's silence from its signalled heartbeat, not from the observer's next read", async () => {
    const a = await join("a");
    const b = await join("b");
    await b.quiet();
    const leader = a.membership.sessionId;
    const told: number[] = [];
    let listens = false;
    const listening = new AbortController();
    const listened = stage.store.signals.listen((signal) => {
      if (signal.kind === "resync") listens = true;
      if (signal.kind !== "beat") return;
      told.push(signal.sessionId);
      b.membership.heard(signal.sessionId, signal.beat);
    }, listening.signal);
    await until("the signals are heard", () => listens);
    // Neither heartbeat is signalled: `b` does not lead, and the leader's liveness is judged by the coordination service.
    await stage.store.sessions.beat(b.membership.sessionId, stage.nowMs);
    await stage.store.sessions.beat(leader, stage.nowMs, { witnessed: true });
    await b.pass(1_000);
    await a.pass(beatMs);
    await until("the beat is told", () => told.length > 0);
    expect(told).toEqual([leader]);
    a.cut = true;
    b.membership.heard(leader, 1);
    await b.pass(beatMs - 1_000);
    await b.pass(beatMs);
    await b.pass(999);
    expect(await alive()).toEqual(["a", "b"]);
    await b.pass(1);
    await until("the silent one is buried", async () => (await alive()).join() === "b");
    await b.quiet();
    expect(b.membership.term()).not.toBeNull();
    listening.abort();
    await listened;
  });

  it("does not declare dead a member whose heartbeat arrives at the last moment", async () => {
    const a = await join("a");
    const b = await join("b");
    await b.quiet();
    await b.pass(timeoutMs - 1);
    await a.pass(beatMs);
    await b.pass(1);
    await b.pass(timeoutMs - 1);
    expect(await alive()).toEqual(["a", "b"]);
  });

  it("a member trusts its session for less time than observers wait, counted from the start of its heartbeat", async () => {
    const a = await join("a");
    await a.quiet();
    expect(a.membership.trusted()).toBe(true);
    a.cut = true;
    await a.pass(timeoutMs - marginMs - 1);
    expect(a.membership.trusted()).toBe(true);
    expect(a.membership.term()).not.toBeNull();
    a.clock.advance(1);
    expect(a.membership.doubtMs()).toBe(0);
    a.clock.advance(1);
    expect(a.membership.trusted()).toBe(false);
    expect(a.membership.doubtMs()).toBe(1);
    expect(a.membership.term(), "a leader in doubt does not lead").toBeNull();
    await a.pass(1_000);
    expect(a.terms.at(-1)).toBeNull();
    expect(
      a.log.lines.filter(({ level }) => level === "warn"),
      "it is said once",
    ).toHaveLength(1);
    a.cut = false;
    await a.pass(1_000);
    expect(a.membership.trusted()).toBe(true);
    expect(a.membership.term(), "nobody else took it").not.toBeNull();
    expect(a.terms.at(-1)).toBe(a.membership.term());
  });

  it("ignores silence while the observer had no connection: the wait restarts when it is back", async () => {
    const a = await join("a");
    const b = await join("b");
    await b.quiet();
    b.cut = true;
    await b.pass(beatMs);
    await b.pass(10 * timeoutMs);
    b.cut = false;
    await b.pass(1_000);
    expect(await alive(), "both were cut off; the other may live").toEqual(["a", "b"]);
    await b.pass(timeoutMs - 1_500);
    expect(await alive()).toEqual(["a", "b"]);
    await b.pass(2_000);
    await until("the silent one is buried", async () => (await alive()).join() === "b");
    a.cut = true;
  });

  it("a member declared dead rejoins, and reports which session replaced which", async () => {
    const a = await join("a");
    await a.quiet();
    const old = a.membership.sessionId;
    expect(a.membership.term()).not.toBeNull();
    await stage.store.sessions.end(old, null, stage.nowMs, "by hand");
    await a.pass(beatMs);
    expect(a.membership.sessionId).toBeGreaterThan(old);
    expect(a.rejoins).toEqual([[old, a.membership.sessionId]]);
    expect(a.membership.trusted()).toBe(true);
    expect(a.terms, "its term ended with its session").toContain(null);
  });

  it("reports the lost session even if the heartbeat after rejoining fails", async () => {
    const a = await join("a");
    await a.quiet();
    const old = a.membership.sessionId;
    await stage.store.sessions.end(old, null, stage.nowMs, "by hand");
    const beat = a.beats;
    a.loseReplies = 0;
    a.clock.advance(beatMs);
    // The next heartbeat reports that the session has ended. The first heartbeat of the new session is applied, but its reply is lost.
    await until("it has found out", () => a.beats > beat);
    a.loseReplies = 1;
    await a.quiet();
    await a.pass(1_000);
    await a.pass(1_000);
    expect(a.membership.sessionId).toBeGreaterThan(old);
    expect(a.rejoins.map(([lost]) => lost)).toEqual([old]);
    expect(a.rejoins.at(-1)?.[1]).toBe(a.membership.sessionId);
  });

  it("a member does not trust a session that another process ended, however recent its last heartbeat", async () => {
    const a = await join("a");
    await a.quiet();
    await stage.store.sessions.end(a.membership.sessionId, null, stage.nowMs, "by hand");
    // Another session takes the node's name at once, so the node cannot join again.
    const thief = await stage.store.sessions.open(
      { node: "a", role: "node", host: "there", pid: 2, version: "0", timeoutMs },
      stage.nowMs,
    );
    expect(thief).toHaveProperty("sessionId");
    try {
      a.clock.advance(beatMs);
      await until("it has found out", () => a.log.lines.some(({ message }) => message.includes("taken for dead")));
      a.clock.advance(1);
      expect(a.membership.trusted()).toBe(false);
      expect(a.membership.term()).toBeNull();
      await until("it says whose the name is", async () => {
        await stage.store.sessions.beat((thief as { sessionId: number }).sessionId, stage.nowMs);
        await a.pass(250);
        return a.log.lines.some(
          ({ level, fields, message }) =>
            level === "error" &&
            fields.code === "NODE_NAME_TAKEN" &&
            /is used by a live process.*kept out/.test(message),
        );
      });
    } finally {
      await stage.store.sessions.end((thief as { sessionId: number }).sessionId, null, stage.nowMs, "done");
    }
  });

  it("refuses a name whose holder still sends heartbeats, and takes over a name whose holder is silent", async () => {
    const a = await join("a");
    const second = new Node();
    const joining = (): Promise<unknown> => {
      const joined = second.join("a").catch((error: unknown) => error);
      let settled = false;
      void joined.then(() => {
        settled = true;
      });
      return until("it to join or to be refused", async () => {
        if (!a.cut) await a.pass(beatMs);
        await second.pass(250);
        return settled && { outcome: joined };
      }).then(({ outcome }) => outcome);
    };
    expect(await joining()).toMatchObject({
      code: "NODE_NAME_TAKEN",
      message: expect.stringContaining(`pid ${process.pid}`),
    });
    a.cut = true;
    await a.quiet();
    const old = a.membership.sessionId;
    expect(await joining()).toBe(second);
    expect(second.membership.sessionId).not.toBe(old);
    expect((await stage.store.sessions.members()).members.map(({ sessionId }) => sessionId)).toEqual([
      second.membership.sessionId,
    ]);
  });
});
