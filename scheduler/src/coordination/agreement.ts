import { randomUUID } from "node:crypto";
import { type Clock, pause } from "../base/clock.ts";
import { CarillonError, isCarillonError, isStoreAway, messageOf } from "../base/errors.ts";
import { untilAnswered } from "../base/until-answered.ts";
import type { Membership } from "../cluster/membership.ts";
import type { Member, SessionStore } from "../cluster/session-store.ts";
import { servicePlace, type Witness } from "../cluster/witness.ts";
import { clockTroubles, disagreements } from "../settings/agreement.ts";
import type { StoreClock } from "../store/store-clock.ts";
import { watchBeats } from "./living.ts";
import { joinCluster } from "./membership.ts";
import { isGone, type JoinOptions } from "./open-session.ts";
import { serviceAddress } from "./service-address.ts";

const retryMs = 250;
/** The service id that the store records for nodes that use no service. */
export const storeAlone = "store";

/**
 * Joins the cluster, and leaves again if this process's settings conflict with those of an older member. The comparison happens
 * once its own row exists: of two processes that start at once, the later one sees the earlier. After a lost session the
 * comparison is repeated.
 * @throws NODE_NAME_TAKEN, NODE_ADDRESS_TAKEN, SETTINGS_DIFFER, COORDINATION_DIFFERS
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
 * The same as `joinAgreeing`, but waits while the store is away.
 * @param optionsOf called at each try
 * @param rename gives the process another name, if it may have any name; returns false if it may not
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
 * @param sessionId this process's own session; the process is compared with members whose session number is smaller. Infinity: it has no
 * session yet.
 */
async function agree(options: JoinOptions, sessionId: number, signal?: AbortSignal): Promise<void> {
  const { store, clock, storeClock, identity, witness, log } = options;
  for (;;) {
    try {
      const place = identity.settings?.coordination ?? null;
      const mine = { serviceId: witness?.serviceId ?? storeAlone, place, at: options.serviceAt ?? null, sessionId };
      await agreeOnCoordination(store.sessions, mine, { clock, storeClock, signal });
      return await agreeOnSettings(options, sessionId, signal);
    } catch (error) {
      // While the store is away this process's session lives on, or is found ended and opened again; the comparison still has to be made.
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
      // The beat of a member that a service shows may stand still. If the service gives no answer, the loop looks once more.
      if (!member.witnessed || (await isGone(options, member))) await endSilent(store.sessions, member, storeClock);
      else if (looks > 0) throw refusal(member);
    }
  }
}

/**
 * Ends the session of a silent member, so that the member cannot continue unnoticed: a process that was only paused finds its session
 * ended, and compares its settings again.
 */
const endSilent = (sessions: SessionStore, { sessionId, beat }: Member, storeClock: StoreClock) =>
  sessions.end(sessionId, beat, storeClock.now(), "silent while another that differs was to join");

/**
 * How a process coordinates: the store's id for the service, its place in messages, and its address for comparison; null: only the store.
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
  /** False: this process is not a member, so it must not move the cluster to another service. */
  joins?: boolean;
}

/** @param url undefined: only the store coordinates */
export function coordinationOf(url: string | undefined, witness: Witness | undefined): Coordination {
  const serviceId = witness?.serviceId ?? storeAlone;
  if (url === undefined) return { serviceId, place: null, at: null };
  return { serviceId, place: servicePlace(url), at: serviceAddress(url) };
}

const after = " after ";
/** The new id of a wiped service contains the former id, so that other processes recognise that the service was wiped. */
const renewed = (before: string) => `${randomUUID()}${after}${before.split(after)[0]}`;
const isRenewed = (id: string, before: string) => id.endsWith(`${after}${before.split(after)[0]}`);

/**
 * Returns the id for a service that holds no cluster's data. If the cluster coordinates by a service at the same address, that service was
 * wiped. Then, if a live member exists, this process must wait until that member has written its id there again; if none lives, the service
 * gets a new id.
 * @param mine this process's own view of the service
 * @param waits true if the caller retries until a live member has written its id
 * @throws COORDINATION_UNREACHABLE: a live member has not written it yet; COORDINATION_DIFFERS: the same, without `waits`
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
 * Makes sure that all nodes of a cluster use one way to coordinate: on two services, each half of the cluster would have its own first in
 * line. A cluster with no other live member may change its service; members that were killed first get their timeout to show whether they
 * live.
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
