import { expect, it } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { joinCluster } from "../../src/coordination/membership.ts";
import { silentLog } from "../../src/log.ts";
import { StoreClock } from "../../src/store-clock.ts";
import type { Witness } from "../../src/witness.ts";
import { postgres } from "../support/servers.ts";
import { openStage, until } from "../support/store-stage.ts";

/** Good all the time; it shows a session from the second look on, as a service does that answers during the first beat. */
class LateWitness implements Pick<Witness, "announce" | "shownUntil" | "sure" | "onChange" | "first" | "leave"> {
  readonly title = "a service";
  readonly serviceId = "one";
  #looks = 0;
  announce(): void {
    this.#looks = 0;
  }
  shownUntil(): number {
    return this.#looks++ === 0 ? 0 : Number.POSITIVE_INFINITY;
  }
  readonly sure = () => true;
  readonly first = () => false;
  readonly onChange = () => undefined;
  readonly leave = async () => undefined;
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
