import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import type { Membership } from "../../src/cluster/membership.ts";
import type { SessionIdentity } from "../../src/cluster/session-store.ts";
import { joinAgreeing } from "../../src/coordination/agreement.ts";
import { openCoordination } from "../../src/coordination/open.ts";
import { StoreClock } from "../../src/store/store-clock.ts";
import { everyPostgres } from "../support/servers.ts";
import { dayMs, type Line, openStage, recordingLog, type Stage } from "../support/store-stage.ts";

/** Session timeout in ms: longer than a busy machine delays a process. */
const timeoutMs = 6_000;
/** Session timeout in ms of a process that is blocked or killed, because the test waits for the end of its session. */
const shortMs = 2_500;
const beatMs = 750;
const settings = { retentionMs: 30 * dayMs, horizonMs: 15_000, claimAheadMs: 1_000 };
const short = { settings: { ...settings, retentionMs: dayMs } };
const soon = { interval: 20 };

/**
 * Runs in real time: heartbeats show that a process lives, and missing heartbeats that it is dead. One version of PostgreSQL is
 * enough, because these tests do not depend on the version.
 */
describe.each(everyPostgres().slice(0, 1))("settings that must agree between nodes, on $title", (server) => {
  let stage: Stage;
  let joined: Membership[] = [];
  /** Blocked processes, by node; their heartbeats are sent once they resume. */
  const stopped = new Map<string, { resume: () => void; gone: Promise<void> }>();
  beforeAll(async () => {
    stage = await openStage(server);
  });
  afterEach(async () => {
    for (const { resume } of stopped.values()) resume();
    stopped.clear();
    for (const membership of joined) await membership.leave("the test is over");
    joined = [];
    for (const { sessionId } of (await stage.store.sessions.members()).members)
      await stage.store.sessions.end(sessionId, null, stage.nowMs, "the test is over");
  });
  afterAll(() => stage.close());

  const identityOf = (node: string, over: Partial<SessionIdentity>): SessionIdentity => ({
    node,
    role: "node",
    host: `host-of-${node}`,
    pid: 7,
    version: "1",
    timeoutMs,
    groups: ["default"],
    labels: { zone: "eu-1" },
    capacity: 20,
    settings,
    ...over,
  });
  const join = async (node: string, over: Partial<SessionIdentity> = {}, clock: Clock = systemClock) => {
    const { log, lines } = recordingLog();
    const { sessions } = stage.store;
    const beat: typeof sessions.beat = async (...given) => {
      await stopped.get(node)?.gone;
      return sessions.beat(...given);
    };
    const membership = await joinAgreeing({
      store: { ...stage.store, sessions: { ...sessions, beat } },
      clock,
      storeClock: new StoreClock(clock),
      log,
      beatMs,
      identity: identityOf(node, over),
    });
    joined.push(membership);
    const at = (level: Line["level"]) => lines.filter((line) => line.level === level);
    return { membership, warnings: at("warn"), errors: () => at("error") };
  };
  const stopStill = (node: string) => {
    let resume: () => void = () => undefined;
    const gone = new Promise<void>((resolve) => {
      resume = resolve;
    });
    stopped.set(node, { resume, gone });
  };
  const goOn = (node: string) => {
    stopped.get(node)?.resume();
    stopped.delete(node);
  };
  const names = async () => (await stage.store.sessions.members()).members.map(({ node }) => node);

  it("a member's labels, capacity and settings are readable by queries, and are not part of its heartbeats", async () => {
    const { membership } = await join("atlas");
    const [member] = (await stage.store.sessions.members()).members;
    expect(member).toMatchObject({ labels: { zone: "eu-1" }, capacity: 20, settings, groups: ["default"] });
    const { members } = await stage.store.sessions.beat(membership.sessionId, stage.nowMs);
    expect(members).toMatchObject([{ node: "atlas", timeoutMs }]);
    expect(members[0]).not.toHaveProperty("labels");
    await stage.rows("update $s.session set capacity = null, settings = null where ended_ms is null");
    expect((await stage.store.sessions.members()).members).toMatchObject([{ capacity: null, settings: null }]);
  });

  it("a node that would drop data a live node keeps is refused with both names and values, and leaves no session", async () => {
    await join("atlas");
    await expect(join("maria", short)).rejects.toMatchObject({
      code: "SETTINGS_DIFFER",
      message: expect.stringMatching(
        /^retention is 30d on atlas and 1d on maria \(live since \d{4}-.*Z: pid 7 on host-of-atlas\)$/,
      ),
      hint: expect.stringContaining("stop them all first"),
    });
    expect(await names()).toEqual(["atlas"]);
    expect(joined[0]?.term()).not.toBeNull();
    await join("runner", { ...short, role: "worker" });
    const { warnings } = await join("tenor", { settings: { ...settings, retentionMs: 90 * dayMs } });
    expect(warnings).toMatchObject([
      { message: "retention is 30d on atlas and 90d on tenor", fields: { code: "SETTINGS_DIFFER" } },
    ]);
  });

  it("of two conflicting nodes that start at once, at most the earlier one stays", async () => {
    const results = await Promise.allSettled([join("atlas"), join("maria", short)]);
    const refused = results.filter(({ status }) => status === "rejected");
    const order = await stage.rows<{ node: string }>(
      "select node from $s.session where node in ('atlas', 'maria') order by id desc limit 2",
    );
    // A longer retention does no harm, so the process that joins second is refused only if its retention is shorter.
    if (order[0]?.node === "maria") {
      expect(refused).toMatchObject([{ reason: { code: "SETTINGS_DIFFER" } }]);
      expect(await names()).toEqual(["atlas"]);
    } else expect(refused).toEqual([]);
  });

  it("a killed node blocks other nodes no longer than its session timeout", async () => {
    const opened = await stage.store.sessions.open(identityOf("dead", { timeoutMs: shortMs }), stage.nowMs);
    expect(opened).toHaveProperty("sessionId");
    await join("maria", short);
    expect(await names()).toEqual(["maria"]);
  });

  it("a planning horizon shorter than the time to notice a death is a warning, and the node joins", async () => {
    await join("atlas", { settings: { ...settings, horizonMs: 8_000 } });
    const { warnings } = await join("slow", { timeoutMs: 30_000, settings: { ...settings, horizonMs: 75_000 } });
    expect(warnings).toMatchObject([{ message: expect.stringMatching(/^atlas plans 8s ahead .* slow's is 30s: /) }]);
    expect(await names()).toEqual(["atlas", "slow"]);
  });

  it("a wall clock that is far off is a warning with its offset, and has no effect", async () => {
    const ahead: Clock = { ...systemClock, wall: () => systemClock.wall() + 60_000 };
    const { warnings, membership } = await join("atlas", {}, ahead);
    expect(warnings).toMatchObject([
      { message: expect.stringMatching(/^this machine's clock is (5[89]|6[01])\.\d s ahead of the store's; /) },
    ]);
    expect(warnings[0]?.fields).toHaveProperty("rightToMs");
    expect(membership.trusted()).toBe(true);
    await membership.leave("stopped");
    expect((await join("maria")).warnings).toEqual([]);
  });

  it("another coordination provider is refused while a member lives, but not after that member was killed", async () => {
    const { log } = recordingLog();
    const signal = new AbortController().signal;
    const storeClock = new StoreClock(systemClock);
    storeClock.sample(systemClock.monotonic(), stage.nowMs, systemClock.monotonic());
    const options = { clock: systemClock, storeClock, log, signal, failFast: true, sessionTimeoutMs: timeoutMs };
    const { membership } = await join("atlas");
    expect(await stage.store.sessions.coordinateBy("store", "some service", null)).toBe(true);
    await expect(openCoordination(undefined, stage.store.sessions, options)).rejects.toMatchObject({
      code: "COORDINATION_DIFFERS",
      message: expect.stringContaining("the live node atlas on host-of-atlas"),
    });
    await membership.leave("stopped");
    await stage.store.sessions.open(identityOf("dead", { timeoutMs: shortMs }), stage.nowMs);
    expect(await openCoordination(undefined, stage.store.sessions, options)).toBeUndefined();
    expect((await stage.store.sessions.cluster()).coordination).toBe("store");
  });

  it("an address belongs to one live process, and is free after that process's session", async () => {
    const address = { settings: { ...settings, address: "10.0.0.7:7373" } };
    const { membership } = await join("atlas", address);
    await expect(join("maria", { ...address, role: "worker" })).rejects.toMatchObject({
      code: "NODE_ADDRESS_TAKEN",
      message: expect.stringMatching(
        /^atlas on host-of-atlas is reached at 10\.0\.0\.7:7373, and so would maria .* \(live since \d{4}-.*Z: pid 7 on host-of-atlas\)$/,
      ),
      hint: expect.stringContaining("address of its own"),
    });
    expect(await names()).toEqual(["atlas"]);
    await membership.leave("stopped");
    await stage.store.sessions.open(identityOf("dead", { ...address, timeoutMs: shortMs }), stage.nowMs);
    await join("maria", address);
    expect(await names()).toEqual(["maria"]);
  });

  it("a paused node is refused after the other nodes changed their settings, logs it, and rejoins once they have left", async () => {
    const { membership: atlas, errors } = await join("atlas", { ...short, timeoutMs: shortMs });
    expect(atlas.term()).not.toBeNull();
    const rejoins: number[] = [];
    atlas.onRejoin((_, next) => rejoins.push(next));
    stopStill("atlas");
    // A process with a longer retention is not refused; it ends the session of the blocked process.
    const { membership: maria } = await join("maria");
    await expect.poll(names, soon).toEqual(["maria"]);
    await expect.poll(() => maria.term(), soon).not.toBeNull();
    goOn("atlas");
    await expect.poll(() => errors().length, soon).toBe(1);
    expect(errors()).toMatchObject([
      {
        message: expect.stringMatching(/^retention is 30d on maria and 1d on atlas .*; this process is kept out: /),
        fields: { code: "SETTINGS_DIFFER", node: "atlas", advice: expect.stringContaining("stop them all first") },
      },
    ]);
    const lookAgain = maria.sessionId;
    // The refused process retries without a new session row for each attempt, and logs no further error.
    let pulses = 0;
    maria.onPulse(() => void pulses++);
    await expect.poll(() => pulses, soon).toBeGreaterThan(3);
    expect([atlas.term(), atlas.trusted(), rejoins, errors().length]).toEqual([null, false, [], 1]);
    const [{ latest } = { latest: 0 }] = await stage.rows("select max(id)::int as latest from $s.session");
    expect(latest).toBe(lookAgain);
    await maria.leave("stopped");
    await expect.poll(() => atlas.term(), soon).not.toBeNull();
    expect([await names(), rejoins]).toEqual([["atlas"], [atlas.sessionId]]);
  });

  it("a paused node is refused after the other nodes changed the provider, with names that operators recognise", async () => {
    const { membership: atlas, errors } = await join("atlas");
    stopStill("atlas");
    await stage.store.sessions.end(atlas.sessionId, null, stage.nowMs, "silent");
    const place = "ZooKeeper at zk1:2181/billing";
    // Heartbeats keep this session alive at first; later the test waits until the session expires.
    const diesMs = 4_000;
    const opened = await stage.store.sessions.open(
      identityOf("maria", { settings: { ...settings, coordination: place }, timeoutMs: diesMs }),
      stage.nowMs,
    );
    const sessionId = "sessionId" in opened ? opened.sessionId : 0;
    expect(await stage.store.sessions.coordinateBy("store", "some service", null)).toBe(true);
    const beats = setInterval(() => void stage.store.sessions.beat(sessionId, stage.nowMs), 100);
    goOn("atlas");
    await expect.poll(() => errors().length, soon).toBe(1);
    clearInterval(beats);
    expect(errors()[0]).toMatchObject({
      message: expect.stringContaining(
        `the live node maria on host-of-maria coordinates by ${place}, and this one would by the store alone; this process is kept out`,
      ),
      fields: { code: "COORDINATION_DIFFERS" },
    });
    expect([atlas.term(), atlas.trusted()]).toEqual([null, false]);
    // The other process has died, so its settings no longer prevent atlas from joining and leading.
    await expect.poll(() => atlas.term(), soon).not.toBeNull();
    expect(await names()).toEqual(["atlas"]);
    expect((await stage.store.sessions.cluster()).coordination).toBe("store");
  });

  it("a node whose session was ended as silent does not rejoin with settings that conflict now", async () => {
    const settled = { ...settings, address: "10.0.0.7:7373" };
    const { membership: atlas, errors } = await join("atlas", { settings: settled, timeoutMs: shortMs });
    stopStill("atlas");
    await join("maria", { settings: settled });
    goOn("atlas");
    await expect.poll(() => errors().length, soon).toBe(1);
    expect(errors()[0]?.fields).toMatchObject({ code: "NODE_ADDRESS_TAKEN" });
    expect([await names(), atlas.trusted()]).toEqual([["maria"], false]);
  });

  it("an observer never leads, not even if there is no leader", async () => {
    const { membership: eye } = await join("eye", { settings: { ...settings, observer: true } });
    let pulses = 0;
    eye.onPulse(() => void pulses++);
    const { membership: atlas } = await join("atlas");
    expect([atlas.term() !== null, eye.term()]).toEqual([true, null]);
    await atlas.leave("stopped");
    const before = pulses;
    await expect.poll(() => pulses - before, soon).toBeGreaterThan(2);
    expect([eye.trusted(), eye.term()]).toEqual([true, null]);
    expect((await stage.store.sessions.members()).leadership.sessionId).toBeNull();
  });
});
