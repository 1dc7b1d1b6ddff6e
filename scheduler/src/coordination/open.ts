import { type Clock, pause } from "../base/clock.ts";
import { withoutCredentials } from "../base/credentials.ts";
import { CarillonError, isCarillonError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import {
  type MembershipProvider,
  type MembershipProviderOptions,
  servicePlace,
} from "../cluster/membership-provider.ts";
import type { SessionStore } from "../cluster/session-store.ts";
import type { StoreClock } from "../store/store-clock.ts";
import { agreeOnCoordination, coordinationOf, nameForNew } from "./agreement.ts";
import { isOpenToAll, openAdvice } from "./service-address.ts";

const zookeeper = /^zookeepers?:\/\/./;
const redis = /^rediss?(?:\+(?:sentinel|cluster))?:\/\/./;

/** Checks the URL's scheme without connecting. @throws OPTION_INVALID if the scheme is unknown */
export function checkCoordination(url: string): void {
  if (zookeeper.test(url) || redis.test(url)) return;
  throw new CarillonError("OPTION_INVALID", `coordination cannot be ${JSON.stringify(withoutCredentials(url))}`, {
    hint: "Give zookeeper://host:2181,host:2181/path or redis://host:6379, or leave it out: the store alone is enough.",
  });
}

export interface OpenOptions {
  sessionTimeoutMs: number;
  clock: Clock;
  storeClock: StoreClock;
  log: Log;
  signal: AbortSignal;
  /** True: reject if the service is unreachable, instead of retrying. */
  failFast: boolean;
  /**
   * True if this process becomes a member of the cluster. A process that only uses locks does not, and must not move the cluster to another
   * service. Default true.
   */
  joins?: boolean;
  /** Replaces the driver that the URL's scheme selects; used by tests of a whole cluster. */
  openProvider?: (options: MembershipProviderOptions & { clock: Clock }) => Promise<MembershipProvider>;
}

const retryMs = 1_000;
/** How many session timeouts a live member has to write its id to a wiped service again: it may notice the wipe only after a timeout. */
const timeoutsForLiving = 2;

// Drivers are imported on first use, so that a cluster without a coordination service does not load them.
const openRedis = async () => (await import("./redis/redis.ts")).openRedisProvider;
const openZooKeeper = async () => (await import("./zookeeper/zookeeper.ts")).openZooKeeper;

/**
 * Opens the coordination service, if one is configured, and ensures that all nodes of the cluster use the same service.
 * @param url undefined: only the store is used
 * @returns undefined if only the store is used
 * @throws COORDINATION_…, STORE_…
 */
export async function openCoordination(
  url: string | undefined,
  sessions: SessionStore,
  openOptions: OpenOptions,
): Promise<MembershipProvider | undefined> {
  const { clock, log, signal, failFast, sessionTimeoutMs } = openOptions;
  const { clusterId } = await sessions.cluster();
  const say = (line: string) => log.warn({}, line);
  let waitsUntilMono: number | undefined;
  const nameNew = () => {
    waitsUntilMono ??= clock.monotonic() + timeoutsForLiving * sessionTimeoutMs;
    return nameForNew(sessions, coordinationOf(url, undefined), openOptions, clock.monotonic() < waitsUntilMono);
  };
  for (let told = false; ; told = true) {
    let provider: MembershipProvider | undefined;
    try {
      const options = { clusterId, sessionTimeoutMs, clock, log: say, signal, failFast: true, nameNew };
      if (url !== undefined) {
        const open = openOptions.openProvider ?? (await (redis.test(url) ? openRedis() : openZooKeeper()));
        provider = await open({ ...options, url });
      }
      await agreeOnCoordination(sessions, coordinationOf(url, provider), openOptions);
      if (url !== undefined && isOpenToAll(url))
        log.warn(
          { advice: openAdvice },
          `${servicePlace(url)} asks for no password: whoever reaches it can have healthy processes taken for dead`,
        );
      return provider;
    } catch (error) {
      await provider?.leave();
      if (!isCarillonError(error, "COORDINATION_UNREACHABLE") || failFast || signal.aborted) throw error;
      if (!told) log.warn({ error: error.message }, "the coordination service is away; going on trying");
      await pause(clock, retryMs, signal);
    }
  }
}

/**
 * Reads which cluster uses a service, without joining that cluster.
 * @returns undefined if no cluster uses it
 * @throws OPTION_INVALID, COORDINATION_UNREACHABLE, COORDINATION_REFUSED, COORDINATION_UNSUPPORTED; COORDINATION_FOREIGN if the
 * service holds other data
 */
export async function lookAtCoordination(url: string): Promise<{ clusterId: string; serviceId: string } | undefined> {
  checkCoordination(url);
  if (redis.test(url)) return (await import("./redis/registry.ts")).lookAtRedis(url);
  return (await import("./zookeeper/zookeeper.ts")).lookAtZooKeeper(url);
}
