import { type Clock, pause } from "../clock.ts";
import { CarillonError, isCarillonError } from "../errors.ts";
import type { Log } from "../log.ts";
import type { SessionStore } from "../store.ts";
import { type Witness, withoutCredentials } from "../witness.ts";
import { firstLiving } from "./living.ts";
import { openRedisWitness } from "./redis.ts";
import { lookAtRedis } from "./redis-registry.ts";
import { lookAtZooKeeper, openZooKeeper } from "./zookeeper.ts";

const zookeeper = /^zookeepers?:\/\/./;
const redis = /^rediss?(?:\+(?:sentinel|cluster))?:\/\/./;

/** @throws OPTION_INVALID: an unknown scheme is found before anything is opened */
export function checkCoordination(url: string): void {
  if (zookeeper.test(url) || redis.test(url)) return;
  throw new CarillonError("OPTION_INVALID", `coordination cannot be ${JSON.stringify(withoutCredentials(url))}`, {
    hint: "Give zookeeper://host:2181,host:2181/path or redis://host:6379, or leave it out: the store alone is enough.",
  });
}

export interface OpenOptions {
  sessionTimeoutMs: number;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
  /** Reject when the service is away, instead of going on trying. */
  failFast: boolean;
  /** This process becomes a member. One that only uses locks must not move a cluster to another service. Default true. */
  joins?: boolean;
}

const retryMs = 1_000;

/**
 * Opens what else than the store the cluster coordinates by, and sees to it that all its nodes use the same.
 * @param url undefined: the store alone
 * @throws COORDINATION_…, STORE_…
 */
export async function openCoordination(
  url: string | undefined,
  sessions: SessionStore,
  openOptions: OpenOptions,
): Promise<Witness | undefined> {
  const { clock, log, signal, failFast, sessionTimeoutMs } = openOptions;
  const { clusterId } = await sessions.cluster();
  const say = (line: string) => log.warn({}, line);
  for (let told = false; ; told = true) {
    let witness: Witness | undefined;
    try {
      const options = { clusterId, sessionTimeoutMs, clock, log: say, signal, failFast: true };
      if (url !== undefined) witness = await (redis.test(url) ? openRedisWitness : openZooKeeper)({ ...options, url });
      await agreeOnCoordination(sessions, witness, openOptions);
      return witness;
    } catch (error) {
      await witness?.leave();
      if (!isCarillonError(error, "COORDINATION_UNREACHABLE") || failFast || signal.aborted) throw error;
      if (!told) log.warn({ error: error.message }, "the coordination service is away; going on trying");
      await pause(clock, retryMs, signal);
    }
  }
}

/**
 * For whoever only looks: whose service this is. @returns undefined: nobody's yet
 * @throws OPTION_INVALID, COORDINATION_UNREACHABLE, COORDINATION_REFUSED, COORDINATION_FOREIGN: it holds something else
 */
export async function lookAtCoordination(url: string): Promise<{ clusterId: string; serviceId: string } | undefined> {
  checkCoordination(url);
  return redis.test(url) ? lookAtRedis(url) : lookAtZooKeeper(url);
}

/** What the store remembers of nodes that use no service. */
export const storeAlone = "store";

/**
 * One cluster uses one way to coordinate: two halves on two services would each have a first in line. A cluster with no
 * live member may change; those that were killed get their timeout to show that they live.
 * @throws COORDINATION_DIFFERS
 */
export async function agreeOnCoordination(
  sessions: SessionStore,
  witness: Witness | undefined,
  { clock, signal, joins = true }: Pick<OpenOptions, "clock" | "signal" | "joins">,
): Promise<void> {
  const mine = witness?.serviceId ?? storeAlone;
  for (;;) {
    const { coordination } = await sessions.cluster();
    if (coordination === mine) return;
    if (coordination !== null && !joins) {
      throw new CarillonError(
        "COORDINATION_DIFFERS",
        "the cluster coordinates by something else than this process's locks would",
        { hint: "Give every process the same `coordination`; to change it, stop them all, and `start` one first." },
      );
    }
    const live = coordination === null ? undefined : await firstLiving(sessions, () => true, clock, signal);
    if (coordination !== null && live) {
      const [theirs, ours] = [coordination, mine].map((id) =>
        id === storeAlone ? "the store alone" : `service ${id}`,
      );
      throw new CarillonError(
        "COORDINATION_DIFFERS",
        `the live node ${live.node} on ${live.host} coordinates by ${theirs}, and this one would by ${ours}`,
        { hint: "Give every node the same `coordination`, or stop them all before you change it." },
      );
    }
    if (await sessions.coordinateBy(coordination, mine)) return;
  }
}
