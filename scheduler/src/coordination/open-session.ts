import { type Clock, pause } from "../base/clock.ts";
import { CarillonError, messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { ClockBack } from "../cluster/clock-votes.ts";
import type { MembershipProvider } from "../cluster/membership-provider.ts";
import { nameHolder } from "../cluster/name-holder.ts";
import type { Member, SessionIdentity } from "../cluster/session-store.ts";
import type { StandIn } from "../cluster/stand-in.ts";
import type { Store } from "../store/store.ts";
import type { StoreClock } from "../store/store-clock.ts";

export interface JoinOptions {
  store: Store;
  /** The coordination service; undefined if only the store is used. */
  provider?: MembershipProvider | undefined;
  /** The service's address, as returned by `serviceAddress`. */
  serviceAt?: string | undefined;
  clock: Clock;
  storeClock: StoreClock;
  identity: SessionIdentity;
  beatMs: number;
  /**
   * The interval in ms between heartbeats while a service lists this process and it does not lead. It limits how late this process notices
   * a change whose signal was lost.
   */
  shownBeatMs?: number;
  /** The thread that acts for this process while the event loop is blocked; default: none. */
  standIn?: StandIn;
  log: Log;
  /** How a node reacts at its start if cluster time has gone back; default: `wait`. */
  clockBack?: ClockBack;
  /**
   * Rejects if this process must not run beside a member with an older session. Called with Infinity before a new session replaces a lost
   * one, and again once the new session exists. Default: never rejects.
   */
  agree?: (sessionId: number, signal: AbortSignal) => Promise<void>;
}

/** A failed heartbeat is retried after this many ms, because the time for which the session is certain is running out. */
export const hurryMs = 250;

/**
 * How long a process may take to send a heartbeat after it was prompted through the store, in ms. A session that the coordination service
 * does not list is prompted before it is ended, because the service may be wrong, or another client may write to it. A live process answers
 * within milliseconds.
 */
export const answerMs = (timeoutMs: number): number => Math.min(timeoutMs / 3, 2_000);

/**
 * Opens a session and returns its number. If a member already has the name, the call waits until that member counts as dead: it
 * has sent no heartbeat for its timeout, or the service no longer lists it and it has not answered a prompt.
 * @throws NODE_NAME_TAKEN if that member sends a heartbeat or, as a listed member, is not dead after two timeouts; STOPPED if
 * the signal aborts
 */
export async function openSession(options: JoinOptions, signal?: AbortSignal): Promise<number> {
  const { store, clock, storeClock, identity } = options;
  let rival: { member: Member; sinceMono: number; told: boolean; askedMono?: number } | undefined;
  for (;;) {
    const opened = await store.sessions.open(identity, storeClock.now());
    if ("sessionId" in opened) return opened.sessionId;
    const { taken } = opened;
    if (rival && rival.member.sessionId === taken.sessionId && rival.member.beat !== taken.beat) {
      throw nameTaken(taken);
    }
    if (!rival || rival.member.sessionId !== taken.sessionId) {
      rival = { member: taken, sinceMono: clock.monotonic(), told: false };
      options.log.info(
        { node: identity.node, pid: taken.pid, host: taken.host },
        "the name is in use; waiting to see whether its holder lives",
      );
    }
    const known = rival;
    const isMissing = taken.witnessed
      ? await isGone(options, taken, (error) => {
          // While the service cannot be queried, the holder's absence is not proven, so the time counts from the next successful query.
          known.sinceMono = clock.monotonic();
          if (!known.told) cannotTell(options, taken, error);
          known.told = true;
        })
      : clock.monotonic() - rival.sinceMono >= taken.timeoutMs;
    if (isMissing && taken.witnessed && known.askedMono === undefined) {
      known.askedMono = clock.monotonic();
      await store.sessions.prompt(taken.sessionId);
    }
    const isOver =
      isMissing && clock.monotonic() - (known.askedMono ?? Number.NEGATIVE_INFINITY) >= answerMs(taken.timeoutMs);
    if (isOver) {
      await store.sessions.end(taken.sessionId, taken.beat, storeClock.now(), "silent while its name was wanted again");
    } else if (taken.witnessed && clock.monotonic() - rival.sinceMono >= 2 * taken.timeoutMs) throw nameTaken(taken);
    await pause(clock, hurryMs, signal);
    if (signal?.aborted) throw new CarillonError("STOPPED", "stopped while joining");
  }
}

function nameTaken(member: Member): CarillonError {
  return new CarillonError("NODE_NAME_TAKEN", `the name ${member.node} is used by ${nameHolder(member)}`, {
    hint: "Give this process another name, or leave the name out and one is made.",
  });
}

/**
 * True if the coordination service reports that the member is not listed; false without a service, or if it cannot be queried.
 * @param unsure called if the service cannot be queried
 */
export async function isGone(
  options: JoinOptions,
  member: Member,
  unsure = (error: unknown) => cannotTell(options, member, error),
): Promise<boolean> {
  try {
    return (await options.provider?.gone([member.sessionId]))?.includes(member.sessionId) ?? false;
  } catch (error) {
    unsure(error);
    return false;
  }
}

function cannotTell({ log }: JoinOptions, { node }: Member, error: unknown): void {
  log.warn({ node, error: messageOf(error) }, "cannot tell whether the name's holder lives");
}
