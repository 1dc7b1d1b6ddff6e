import { randomUUID } from "node:crypto";
import { type Clock, pause } from "../base/clock.ts";
import { CarillonError, isCarillonError, isStoreAway, messageOf } from "../base/errors.ts";
import { untilAnswered } from "../base/until-answered.ts";
import type { Membership } from "../cluster/membership.ts";
import { type MembershipProvider, servicePlace } from "../cluster/membership-provider.ts";
import type { Member, SessionStore } from "../cluster/session-store.ts";
import { clockTroubles, disagreements } from "../settings/agreement.ts";
import type { StoreClock } from "../store/store-clock.ts";
import { watchBeats } from "./living.ts";
import { joinCluster } from "./membership.ts";
import { isGone, type JoinOptions } from "./open-session.ts";
import { serviceAddress } from "./service-address.ts";

const retryMs = 250;
/** The service id that the store records for a cluster whose nodes use no coordination service. */
export const storeAlone = "store";

/**
 * Joins the cluster, and leaves again if this process's settings conflict with those of a member that joined earlier. The settings are
 * compared once this process's own session row exists, so that of two processes that start at the same time, the later one sees the
 * earlier. They are compared again after a lost session.
 * @throws NODE_ADDRESS_TAKEN, SETTINGS_DIFFER, COORDINATION_DIFFERS, and the errors of `joinCluster`
 */
export async function joinAgreeing(options: JoinOptions, signal?: AbortSignal): Promise<Membership> {
  const membership = await joinCluster({ ...options, agree: (...given) => agree(options, ...given) }, signal);
  try {
    const { wallOffsetMs, errorMs } = options.storeClock;
    for (const words of clockTroubles(options.storeClock))
      options.log.warn({ offsetMs: Math.round(wallOffsetMs), rightToMs: Math.ceil(errorMs) }, words);
    await agree(options, membership.sessionId, signal);
    return membership;
  } catch (error) {
    await membership.leave("its settings differ from the others'");
    throw error;
  }
}

/**
 * Joins like `joinAgreeing`, but retries while the store is unreachable, unless `failFast`.
 * @param optionsOf called for each attempt
 * @param rename called if the name is taken: gives the process another name and returns true, or returns false if the name is fixed
 */
export async function joinPatiently(
  optionsOf: () => JoinOptions,
  { rename, ...waiting }: { clock: Clock; failFast: boolean; rename: () => boolean; signal: AbortSignal },
): Promise<Membership> {
  const { signal } = waiting;
  for (;;) {
    try {
      return await untilAnswered(() => joinAgreeing(optionsOf(), signal), waiting);
    } catch (error) {
      if (!isCarillonError(error, "NODE_NAME_TAKEN") || !rename()) throw error;
    }
  }
}

/**
 * Compares this process's coordination and settings with those of the members.
 * @param sessionId this process's own session: the settings are compared with members whose session number is smaller. Infinity if it has
 * no session yet.
 */
async function agree(options: JoinOptions, sessionId: number, signal?: AbortSignal): Promise<void> {
  const { store, clock, storeClock, identity, provider, log } = options;
  for (;;) {
    try {
      const place = identity.settings?.coordination ?? null;
      const mine = { serviceId: provider?.serviceId ?? storeAlone, place, at: options.serviceAt ?? null, sessionId };
      await agreeOnCoordination(store.sessions, mine, { clock, storeClock, signal });
      return await agreeOnSettings(options, sessionId, signal);
    } catch (error) {
      // While the store is unreachable, this process's session may go on or be replaced. In both cases the comparison must still be made.
      if (!isStoreAway(error) || signal?.aborted) throw error;
      log.warn({ error: messageOf(error) }, "cannot compare settings with the others'; trying again");
      await pause(clock, retryMs, signal);
    }
  }
}

async function agreeOnSettings(options: JoinOptions, sessionId: number, signal?: AbortSignal): Promise<void> {
  const { store, clock, storeClock, identity, log } = options;
  const withMe = (member: Member) => (member.sessionId < sessionId ? disagreements(member, identity) : []);
  const refuses = (member: Member) => withMe(member).some(({ refused }) => refused);
  const refusal = (elder: Member) => {
    const [why] = withMe(elder).filter(({ refused }) => refused);
    const since = new Date(elder.startedMs).toISOString();
    return new CarillonError(
      why?.code ?? "SETTINGS_DIFFER",
      `${why?.found} (live since ${since}: pid ${elder.pid} on ${elder.host})`,
      { hint: why?.advice ?? "" },
    );
  };
  const warned = new Set<string>();
  for (let looks = 0; ; looks++) {
    const { members } = await store.sessions.members();
    const heard = members.filter(({ seenMs, timeoutMs }) => storeClock.now() - seenMs <= timeoutMs);
    for (const { code, found, advice, refused } of heard.flatMap(withMe)) {
      if (!refused && !warned.has(found)) log.warn({ code, advice }, found);
      warned.add(found);
    }
    if (!members.some(refuses)) return;
    const watched = await watchBeats(store.sessions, refuses, clock, signal);
    if ("living" in watched) throw refusal(watched.living);
    for (const member of watched.silent) {
      // A listed member sends heartbeats rarely, so the service is queried. If the service does not answer, the loop runs once more.
      if (!member.witnessed || (await isGone(options, member))) await endSilent(store.sessions, member, storeClock);
      else if (looks > 0) throw refusal(member);
    }
  }
}

/**
 * Ends the session of a member that sends no heartbeats. If that process was only paused, it finds its session ended and compares its
 * settings again before it continues.
 */
const endSilent = (sessions: SessionStore, { sessionId, beat }: Member, storeClock: StoreClock) =>
  sessions.end(sessionId, beat, storeClock.now(), "silent while another that differs was to join");

/**
 * How a process coordinates. `serviceId`: the id of its service. `place`: the service as messages name it. `at`: the service's address for
 * comparison. The last two are null if only the store is used.
 */
interface Coordination {
  serviceId: string;
  place: string | null;
  at: string | null;
}

interface AgreeOptions {
  clock: Clock;
  storeClock: StoreClock;
  signal?: AbortSignal;
  /** False if this process does not become a member; then it must not move the cluster to another service. */
  joins?: boolean;
}

/** @param url the service's URL; undefined if only the store is used */
export function coordinationOf(url: string | undefined, provider: MembershipProvider | undefined): Coordination {
  const serviceId = provider?.serviceId ?? storeAlone;
  if (url === undefined) return { serviceId, place: null, at: null };
  return { serviceId, place: servicePlace(url), at: serviceAddress(url) };
}

const after = " after ";
/** The new id of a wiped service contains the former id, so that other processes can see that it is the same service. */
const renewed = (before: string) => `${randomUUID()}${after}${before.split(after)[0]}`;
const isRenewed = (id: string, before: string) => id.endsWith(`${after}${before.split(after)[0]}`);

/**
 * Returns the id for a service that holds no cluster's data. If the store records that the cluster uses a service at this
 * address, the service was wiped. Then a live member must write its id there again, so this call fails while a member is alive;
 * if no member is alive, the service gets a new id.
 * @param mine the service as this process is configured to use it
 * @param waits true if the caller retries on COORDINATION_UNREACHABLE
 * @throws COORDINATION_UNREACHABLE if a live member has not written its id yet; COORDINATION_DIFFERS in the same case without
 * `waits`, and for a process that does not join if the cluster uses another service
 */
export async function nameForNew(
  sessions: SessionStore,
  mine: Omit<Coordination, "serviceId">,
  { clock, storeClock, signal, joins = true }: AgreeOptions,
  waits: boolean,
): Promise<string> {
  const { coordination, coordinationAt } = await sessions.cluster();
  const isWiped = coordination !== null && coordinationAt === mine.at;
  if (coordination === null || (joins && !isWiped)) return randomUUID();
  if (!isWiped) throw locksDiffer();
  const watched = await watchBeats(sessions, () => true, clock, signal);
  if (!("living" in watched)) {
    for (const member of watched.silent) await endSilent(sessions, member, storeClock);
    return renewed(coordination);
  }
  const { node, host } = watched.living;
  throw new CarillonError(
    waits ? "COORDINATION_UNREACHABLE" : "COORDINATION_DIFFERS",
    `${mine.place} holds nothing of this cluster, by whose record the live node ${node} on ${host} relies on it`,
    {
      hint: "After a wipe that node writes there again within seconds. If it does not, its address leads to another service than this one's.",
    },
  );
}

/**
 * Ensures that all nodes of a cluster use the same coordination: with two services, each would have its own first node in the queue. A
 * cluster without any other live member may change its service. A member counts as live until it has sent no heartbeat for its session
 * timeout, because its process may have been killed.
 * @throws COORDINATION_DIFFERS
 */
export async function agreeOnCoordination(
  sessions: SessionStore,
  mine: Coordination & { sessionId?: number },
  { clock, storeClock, signal, joins = true }: AgreeOptions,
): Promise<void> {
  for (;;) {
    const { coordination, coordinationAt } = await sessions.cluster();
    if (coordination === mine.serviceId) {
      const isKnown = coordinationAt === mine.at || (coordinationAt !== null && !joins);
      if (isKnown || (await sessions.coordinateBy(coordination, coordination, mine.at))) return;
      continue;
    }
    const isWiped = coordination !== null && coordinationAt === mine.at && isRenewed(mine.serviceId, coordination);
    if (coordination !== null && !joins && !isWiped) throw locksDiffer();
    if (coordination !== null) {
      const others = (member: Member) => member.sessionId !== mine.sessionId;
      const watched = await watchBeats(sessions, others, clock, signal);
      if ("living" in watched) throw coordinationDiffers(watched.living, coordination, mine);
      for (const member of watched.silent) await endSilent(sessions, member, storeClock);
    }
    if (await sessions.coordinateBy(coordination, mine.serviceId, mine.at)) return;
  }
}

const locksDiffer = () =>
  new CarillonError(
    "COORDINATION_DIFFERS",
    "the cluster coordinates by something else than this process's locks would",
    {
      hint: "Give every process the same `coordination`; to change it, stop them all, and `start` one first.",
    },
  );

function coordinationDiffers(
  { node, host, settings }: Member,
  theirId: string,
  { serviceId, place }: Coordination,
): CarillonError {
  const named = (id: string, known: string | null | undefined) =>
    id === storeAlone ? "the store alone" : (known ?? `service ${id}`);
  const [theirs, ours] = [named(theirId, settings?.coordination), named(serviceId, place)];
  const same = theirs === ours ? `, which calls itself ${serviceId} now and ${theirId} before` : "";
  return new CarillonError(
    "COORDINATION_DIFFERS",
    `the live node ${node} on ${host} coordinates by ${theirs}, and this one would by ${ours}${same}`,
    { hint: "Give every node the same `coordination`, or stop them all before you change it." },
  );
}
