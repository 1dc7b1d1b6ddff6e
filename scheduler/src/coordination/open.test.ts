import { expect, it } from "vitest";
import { recordingLog } from "../../test/support/store-stage.ts";
import { VirtualClock } from "../../test/support/virtual-clock.ts";
import type { MembershipProvider } from "../cluster/membership-provider.ts";
import type { SessionStore } from "../cluster/session-store.ts";
import { StoreClock } from "../store/store-clock.ts";
import { openCoordination } from "./open.ts";

/** Opens the service at `url`, and returns the warnings that are logged. */
async function warnings(url: string): Promise<string[]> {
  const { log, lines } = recordingLog();
  const clock = new VirtualClock(0);
  const known = { clusterId: "c", coordination: "s1", coordinationAt: null, lockEra: 0 };
  const sessions = { cluster: async () => known, coordinateBy: async () => true } as unknown as SessionStore;
  await openCoordination(url, sessions, {
    sessionTimeoutMs: 6_000,
    clock,
    storeClock: new StoreClock(clock),
    log,
    signal: new AbortController().signal,
    failFast: true,
    openProvider: async () => ({ serviceId: "s1" }) as MembershipProvider,
  });
  return lines.map(({ message }) => message);
}

it("warns of a service that is reachable from other machines without a password", async () => {
  expect(await warnings("redis://r.example:6379")).toEqual([
    "Redis at r.example:6379 asks for no password: whoever reaches it can have healthy processes taken for dead",
  ]);
  expect(await warnings("zookeeper://zk1:2181,zk2:2181/billing")).toHaveLength(1);
  for (const url of ["redis://:pass@r.example", "redis://127.0.0.1", "zookeeper://me:pass@zk1:2181"])
    expect(await warnings(url), url).toEqual([]);
});
