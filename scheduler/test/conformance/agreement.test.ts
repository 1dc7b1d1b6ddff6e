import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Clock, systemClock } from "../../src/clock.ts";
import { joinAgreeing } from "../../src/coordination/agreement.ts";
import { openCoordination } from "../../src/coordination/open.ts";
import type { Membership } from "../../src/coordination.ts";
import type { SessionIdentity } from "../../src/store.ts";
import { StoreClock } from "../../src/store-clock.ts";
import { everyPostgres } from "../support/servers.ts";
import { dayMs, openStage, recordingLog, type Stage } from "../support/store-stage.ts";

const timeoutMs = 1_500;
const settings = { retentionMs: 30 * dayMs, horizonMs: 15_000, claimAheadMs: 1_000 };
const short = { settings: { ...settings, retentionMs: dayMs } };

/** Real time: who lives shows by beats, and who does not by standing still. */
describe.each(everyPostgres())("settings that must agree, on $title", (server) => {
  let stage: Stage;
  let joined: Membership[] = [];
  beforeAll(async () => {
    stage = await openStage(server);
  });
  afterEach(async () => {
    for (const membership of joined) await membership.leave("the test is over");
    joined = [];
    for (const { sessionId } of (await stage.store.sessions.members()).members)
      await stage.store.sessions.end(sessionId, null, stage.nowMs, "the test is over");
  });
  afterAll(() => stage.close());

  const identityOf = (node: string, over: Partial<SessionIdentity>): SessionIdentity => ({
    ...{ node, role: "node", host: `host-of-${node}`, pid: 7, version: "1", timeoutMs, groups: ["default"] },
    ...{ labels: { zone: "eu-1" }, capacity: 20, settings },
    ...over,
  });
  const join = async (node: string, over: Partial<SessionIdentity> = {}, clock: Clock = systemClock) => {
    const { log, lines } = recordingLog();
    const membership = await joinAgreeing({
      ...{ store: stage.store, clock, storeClock: new StoreClock(clock), log, beatMs: timeoutMs / 2 },
      identity: identityOf(node, over),
    });
    joined.push(membership);
    return { membership, warnings: lines.filter(({ level }) => level === "warn") };
  };
  const names = async () => (await stage.store.sessions.members()).members.map(({ node }) => node);

  it("a member tells its labels, capacity and settings to those who look; its pulses leave them out", async () => {
    const { membership } = await join("atlas");
    const [member] = (await stage.store.sessions.members()).members;
    expect(member).toMatchObject({ labels: { zone: "eu-1" }, capacity: 20, settings, groups: ["default"] });
    const { members } = await stage.store.sessions.beat(membership.sessionId, stage.nowMs);
    expect(members).toMatchObject([{ node: "atlas", timeoutMs }]);
    expect(members[0]).not.toHaveProperty("labels");
    await stage.rows("update $s.session set capacity = null, settings = null where ended_ms is null");
    expect((await stage.store.sessions.members()).members).toMatchObject([{ capacity: null, settings: null }]);
  });

  it("who would drop what a live node keeps is refused, with both names and values, and leaves no session", async () => {
    await join("atlas");
    await expect(join("maria", short)).rejects.toMatchObject({
      code: "SETTINGS_DIFFER",
      message: "retention is 30d on atlas and 1d on maria (live: pid 7 on host-of-atlas)",
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

  it("of two that start at once, at most the earlier one stays", async () => {
    const results = await Promise.allSettled([join("atlas"), join("maria", short)]);
    const refused = results.filter(({ status }) => status === "rejected");
    const order = await stage.rows<{ node: string }>(
      "select node from $s.session where node in ('atlas', 'maria') order by id desc limit 2",
    );
    // Keeping more is no harm, so the later one is refused only when it is the one that would drop.
    if (order[0]?.node === "maria") {
      expect(refused).toMatchObject([{ reason: { code: "SETTINGS_DIFFER" } }]);
      expect(await names()).toEqual(["atlas"]);
    } else expect(refused).toEqual([]);
  });

  it("one that was killed is in nobody's way for longer than its timeout", async () => {
    const opened = await stage.store.sessions.open(identityOf("dead", {}), stage.nowMs);
    expect(opened).toHaveProperty("sessionId");
    await join("maria", short);
    expect(await names()).toEqual(["maria"]);
  });

  it("a horizon that may end before a death is noticed is told, and the node joins", async () => {
    await join("atlas", { settings: { ...settings, horizonMs: 8_000 } });
    const { warnings } = await join("slow", { timeoutMs: 30_000, settings: { ...settings, horizonMs: 75_000 } });
    expect(warnings).toMatchObject([{ message: expect.stringMatching(/^atlas plans 8s ahead .* slow's is 30s: /) }]);
    expect(await names()).toEqual(["atlas", "slow"]);
  });

  it("a wall clock that is far off is told with its offset, and decides nothing", async () => {
    const ahead: Clock = { ...systemClock, wall: () => systemClock.wall() + 60_000 };
    const { warnings, membership } = await join("atlas", {}, ahead);
    expect(warnings).toMatchObject([
      { message: expect.stringMatching(/^this machine's clock is (60\.0|59\.9|60\.1) s ahead of the store's; /) },
    ]);
    expect(warnings[0]?.fields).toHaveProperty("rightToMs");
    expect(membership.trusted()).toBe(true);
    await membership.leave("stopped");
    expect((await join("maria")).warnings).toEqual([]);
  });

  it("another way to coordinate is refused while a member lives, not for one that was killed", async () => {
    const { log } = recordingLog();
    const signal = new AbortController().signal;
    const options = { clock: systemClock, log, signal, failFast: true, sessionTimeoutMs: timeoutMs };
    const { coordination } = await stage.store.sessions.cluster();
    expect(await stage.store.sessions.coordinateBy(coordination, "some service")).toBe(true);
    const { membership } = await join("atlas");
    await expect(openCoordination(undefined, stage.store.sessions, options)).rejects.toMatchObject({
      code: "COORDINATION_DIFFERS",
      message: expect.stringContaining("the live node atlas on host-of-atlas"),
    });
    await membership.leave("stopped");
    await stage.store.sessions.open(identityOf("dead", {}), stage.nowMs);
    expect(await openCoordination(undefined, stage.store.sessions, options)).toBeUndefined();
    expect((await stage.store.sessions.cluster()).coordination).toBe("store");
  });
});
