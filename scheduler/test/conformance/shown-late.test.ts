import { expect, it } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { joinCluster } from "../../src/coordination/membership.ts";
import { silentLog } from "../../src/log.ts";
import { StoreClock } from "../../src/store-clock.ts";
import type { Witness } from "../../src/witness.ts";
import { postgres } from "../support/servers.ts";
import { openStage, until } from "../support/store-stage.ts";

/** It shows what it is told to. */
class ToldWitness
  implements Pick<Witness, "announce" | "shownUntil" | "shownSince" | "sure" | "onChange" | "first" | "leave">
{
  readonly title = "a service";
  readonly serviceId = "one";
  since = 0;
  announce(): void {
    this.since = systemClock.monotonic();
  }
  readonly shownUntil = () => Number.POSITIVE_INFINITY;
  readonly shownSince = () => this.since;
  readonly sure = () => true;
  readonly first = () => false;
  readonly onChange = () => undefined;
  readonly leave = async () => undefined;
}

/** It shows a session from the second look on, as a service does that answers during the first beat. */
class LateWitness extends ToldWitness {
  #looks = 0;
  override readonly shownUntil = () => (this.#looks++ === 0 ? 0 : Number.POSITIVE_INFINITY);
}

it("tells the store at once that a service shows it, when that begins during a beat and nothing else changes", async ({
  onTestFinished,
}) => {
  const stage = await openStage(postgres());
  const membership = await joinCluster({
    ...{ store: stage.store, clock: systemClock, storeClock: new StoreClock(systemClock), log: silentLog },
    witness: new LateWitness() as unknown as Witness,
    identity: { node: "late", role: "worker", host: "here", pid: process.pid, version: "0", timeoutMs: 60_000 },
    // By then others, who do not know, would have taken one with a short timeout for dead.
    ...{ beatMs: 30_000, shownBeatMs: 50_000 },
  });
  onTestFinished(async () => {
    await membership.leave("done");
    await stage.close();
  });
  const witnessed = async () =>
    (await stage.rows<{ witnessed: boolean }>("select witnessed from $s.session"))[0]?.witnessed;
  await until("the others to know that it is shown", async () => (await witnessed()) === true, 10_000);
  expect(membership.trusted()).toBe(true);
});

it("does not take it for a proof of life that a service shows it again after a gap, but asks the store", async ({
  onTestFinished,
}) => {
  const stage = await openStage(postgres());
  const { sessions } = stage.store;
  let release = (): void => undefined;
  let held = Promise.resolve();
  const beat: typeof sessions.beat = (...given) => held.then(() => sessions.beat(...given));
  const witness = new ToldWitness();
  const membership = await joinCluster({
    ...{ clock: systemClock, storeClock: new StoreClock(systemClock), log: silentLog },
    store: { ...stage.store, sessions: { ...sessions, beat } },
    witness: witness as unknown as Witness,
    identity: { node: "gap", role: "worker", host: "here", pid: process.pid, version: "0", timeoutMs: 60_000 },
    ...{ beatMs: 30_000, shownBeatMs: 50_000 },
  });
  onTestFinished(async () => {
    release();
    await membership.leave("done");
    await stage.close();
  });
  const { sessionId } = membership;
  const witnessed = async () =>
    (await stage.rows<{ witnessed: boolean }>("select witnessed from $s.session where ended_ms is null"))[0]?.witnessed;
  await until("the others to know that it is shown", async () => (await witnessed()) === true, 10_000);
  expect(membership.trusted()).toBe(true);

  // Stopped for so long that it was gone for the service, and its session was ended; then woken, and shown again at once.
  held = new Promise((resolve) => {
    release = resolve;
  });
  await stage.store.sessions.end(sessionId, null, Date.now(), "not shown any more");
  witness.since = systemClock.monotonic();
  expect(membership.trusted()).toBe(false);
  membership.refresh();
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(membership.trusted()).toBe(false);
  release();
  await until("it to have a session again", () => membership.sessionId !== sessionId && membership.trusted(), 10_000);
});
