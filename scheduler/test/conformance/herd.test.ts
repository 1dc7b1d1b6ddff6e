import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ProviderMember, type ProviderStage, providerDrivers, shownAs } from "../support/provider-stage.ts";
import { until } from "../support/store-stage.ts";

/** The session timeout in ms: long enough that no session expires by mistake on a busy machine, and that few heartbeats are counted. */
const sessionTimeoutMs = 20_000;
const nodes = 30;
const times = 5;
/** The most requests that one member sends to join and to leave again; some of them belong to its connection. */
const ownMost = 14;
/**
 * Tolerance in requests: the background requests of all members are measured separately and vary. One more request from each node would add
 * `nodes` requests, which is more than this.
 */
const uncertain = nodes / 4;

// bench/herd.ts measures the same with 200 nodes and 5,000 workers.
describe.each(providerDrivers)("many nodes at once on $title", (driver) => {
  let stage: ProviderStage;
  const all: ProviderMember[] = [];
  let sessions = 0;
  beforeAll(async () => {
    stage = await driver.open();
  });
  afterAll(async () => {
    await Promise.all(all.map((member) => member.close()));
    await stage.close();
  });
  const join = async (role: "node" | "worker") => {
    const member = await stage.make({ sessionTimeoutMs });
    const sessionId = ++sessions;
    member.provider.announce(shownAs(sessionId, { role }));
    await until("it is shown", () => member.provider.shownUntil() > performance.now());
    if (role === "node") member.provider.contend();
    return Object.assign(member, { sessionId });
  };

  it("no node queries the service when a node joins or leaves: only the first in line is notified", async () => {
    for (let node = 0; node < nodes; node++) all.push(await join("node"));
    let first: ProviderMember | undefined;
    await until("one is first and follows", () => {
      first = all.find(({ provider }) => provider.first());
      return first?.provider.shown()?.size === nodes;
    });
    const seen = () => first?.provider.shown() as ReadonlySet<number>;
    const before = await stage.requests();
    const began = performance.now();
    for (let time = 0; time < times; time++) {
      const worker = await join("worker");
      await until("it is seen", () => seen().has(worker.sessionId));
      await worker.close();
      await until("it is seen no more", () => !seen().has(worker.sessionId));
    }
    const tookMs = performance.now() - began;
    const asked = (await stage.requests()) - before;
    await new Promise((resolve) => setTimeout(resolve, tookMs));
    const anyhow = (await stage.requests()) - before - asked;
    expect((asked - anyhow) / times).toBeLessThanOrEqual(ownMost + uncertain);
  });
});
