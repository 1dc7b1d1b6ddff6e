import { expect, it } from "vitest";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import type { MembershipProvider } from "../../src/cluster/membership-provider.ts";
import { joinCluster } from "../../src/coordination/membership.ts";
import { StoreClock } from "../../src/store/store-clock.ts";
import { postgres } from "../support/servers.ts";
import { openStage, until } from "../support/store-stage.ts";
import { VirtualClock } from "../support/virtual-clock.ts";

/** A coordination provider whose answers the test sets. */
class ToldProvider
  implements
    Pick<
      MembershipProvider,
      "announce" | "shownUntil" | "shownSince" | "sure" | "onChange" | "first" | "leave" | "stepDown"
    >
{
  readonly title = "a service";
  readonly serviceId = "one";
  readonly #clock: Clock;
  since = 0;
  until = Number.POSITIVE_INFINITY;
  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }
  announce(): void {
    this.since = this.#clock.monotonic();
  }
  shownUntil(): number {
    return this.until;
  }
  readonly shownSince = () => this.since;
  readonly sure = () => true;
  readonly first = () => false;
  readonly onChange = () => undefined;
  readonly leave = async () => undefined;
  readonly stepDown = async () => undefined;
}

/** A provider that reports the session as alive from its second query on, like a service that answers during the first heartbeat. */
class LateProvider extends ToldProvider {
  #looks = 0;
  override shownUntil(): number {
    return this.#looks++ === 0 ? 0 : Number.POSITIVE_INFINITY;
  }
}

it("reports to the store at once that the coordination provider lists it, if that begins during a heartbeat", async ({
  onTestFinished,
}) => {
  const stage = await openStage(postgres());
  const membership = await joinCluster({
    store: stage.store,
    clock: systemClock,
    storeClock: new StoreClock(systemClock),
    log: silentLog,
    provider: new LateProvider() as unknown as MembershipProvider,
    identity: { node: "late", role: "worker", host: "here", pid: process.pid, version: "0", timeoutMs: 60_000 },
    // Heartbeats are rarer than usual: the store must learn before the next heartbeat that the service reports the session as alive.
    // Otherwise other nodes would take a session with a short timeout for dead.
    beatMs: 30_000,
    shownBeatMs: 50_000,
  });
  onTestFinished(async () => {
    await membership.leave("done");
    await stage.close();
  });
  const witnessed = async () =>
    (await stage.rows<{ witnessed: boolean }>("select witnessed from $s.session"))[0]?.witnessed;
  await until("the others to know that it is shown", async () => (await witnessed()) === true);
  expect(membership.trusted()).toBe(true);
});

it("does not accept being listed again after a gap as proof of life, but queries the store", async ({
  onTestFinished,
}) => {
  const stage = await openStage(postgres());
  const { sessions } = stage.store;
  let release = (): void => undefined;
  let held = Promise.resolve();
  let beats = 0;
  const beat: typeof sessions.beat = (...given) => {
    beats++;
    return held.then(() => sessions.beat(...given));
  };
  const provider = new ToldProvider();
  const membership = await joinCluster({
    clock: systemClock,
    storeClock: new StoreClock(systemClock),
    log: silentLog,
    store: { ...stage.store, sessions: { ...sessions, beat } },
    provider: provider as unknown as MembershipProvider,
    identity: { node: "gap", role: "worker", host: "here", pid: process.pid, version: "0", timeoutMs: 60_000 },
    beatMs: 30_000,
    shownBeatMs: 50_000,
  });
  onTestFinished(async () => {
    release();
    await membership.leave("done");
    await stage.close();
  });
  const { sessionId } = membership;
  const witnessed = async () =>
    (await stage.rows<{ witnessed: boolean }>("select witnessed from $s.session where ended_ms is null"))[0]?.witnessed;
  await until("the others to know that it is shown", async () => (await witnessed()) === true);
  expect(membership.trusted()).toBe(true);

  // Simulates a process that was suspended until the service and the store had ended its session, and that the service then reports as
  // alive.
  held = new Promise((resolve) => {
    release = resolve;
  });
  await stage.store.sessions.end(sessionId, null, Date.now(), "not shown any more");
  provider.since = systemClock.monotonic();
  expect(membership.trusted()).toBe(false);
  const before = beats;
  membership.refresh();
  // The store has not answered yet, but the process already knows from the provider that its session was interrupted.
  await until("it to ask the store", () => beats > before);
  expect(membership.trusted()).toBe(false);
  release();
  await until("it to have a session again", () => membership.sessionId !== sessionId && membership.trusted());
});

it("queries the store before an unrenewed confirmation of the provider expires, and is never in doubt", async ({
  onTestFinished,
}) => {
  const stage = await openStage(postgres());
  const { sessions } = stage.store;
  const clock = new VirtualClock(stage.nowMs);
  const provider = new ToldProvider(clock);
  // From now on, the service answers nothing and sends no message.
  provider.until = clock.monotonic() + 6_000;
  const told: { witnessed: boolean | undefined; atMono: number }[] = [];
  const underWay = new Set<Promise<unknown>>();
  const beat: typeof sessions.beat = (...given) => {
    told.push({ witnessed: given[2]?.witnessed, atMono: clock.monotonic() });
    const answer = sessions.beat(...given).finally(() => underWay.delete(answer));
    underWay.add(answer);
    return answer;
  };
  const membership = await joinCluster({
    store: { ...stage.store, sessions: { ...sessions, beat } },
    clock,
    storeClock: new StoreClock(clock),
    log: silentLog,
    provider: provider as unknown as MembershipProvider,
    identity: { node: "silent", role: "worker", host: "here", pid: process.pid, version: "0", timeoutMs: 8_000 },
    beatMs: 3_000,
    shownBeatMs: 60_000,
  });
  onTestFinished(async () => {
    await membership.leave("done");
    await stage.close();
  });
  const settled = async () => {
    do {
      await Promise.all(underWay);
      await new Promise((resolve) => setTimeout(resolve, 2));
    } while (underWay.size > 0);
  };
  await until("the others to know that it is shown", async () => {
    await settled();
    return told.at(-1)?.witnessed === true;
  });
  const { until: endsMono } = provider;
  const doubts: number[] = [];
  while (clock.monotonic() < endsMono + 1_000) {
    clock.advance(25);
    if (!membership.trusted()) doubts.push(clock.monotonic() - endsMono);
    await settled();
    if (!membership.trusted()) doubts.push(clock.monotonic() - endsMono);
  }
  expect(doubts).toEqual([]);
  const relied = told.find(({ witnessed, atMono }) => witnessed === false && atMono > endsMono - 6_000);
  expect(relied?.atMono).toBeLessThan(endsMono);
  expect((await stage.rows("select witnessed from $s.session"))[0]).toEqual({ witnessed: false });
});
