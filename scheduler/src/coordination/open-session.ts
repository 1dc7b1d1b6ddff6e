import { type Clock, pause } from "../base/clock.ts";
import { CarillonError, messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { ClockBack } from "../cluster/clock-votes.ts";
import { nameHolder } from "../cluster/name-holder.ts";
import type { Member, SessionIdentity } from "../cluster/session-store.ts";
import type { StandIn } from "../cluster/stand-in.ts";
import type { Witness } from "../cluster/witness.ts";
import type { Store } from "../store/store.ts";
import type { StoreClock } from "../store/store-clock.ts";

export interface JoinOptions {
  store: Store;
  /** A coordination service; without a service, only the store coordinates. */
  witness?: Witness | undefined;
  /** The service's address, as `serviceAddress` returns it. */
  serviceAt?: string | undefined;
  clock: Clock;
  storeClock: StoreClock;
  identity: SessionIdentity;
  beatMs: number;
  /**
   * The beat's interval while a service shows this process and it does not lead, in ms. It limits how late a change is noticed whose signal
   * was lost.
   */
  shownBeatMs?: number;
  /** The thread that acts while the event loop stands still; default: none. */
  standIn?: StandIn;
  log: Log;
  /** The behaviour of a node that finds cluster time behind its former maximum; default: it waits. */
  clockBack?: ClockBack;
  /**
   * Rejects if this process must not run beside a member whose session is older. Called with Infinity before a lost session is followed by
   * another, and again once the new session exists. Default: always agrees.
   */
  agree?: (sessionId: number, signal: AbortSignal) => Promise<void>;
}

/** A beat that failed is tried again after this many ms, because trust is running out. */
export const hurryMs = 250;

/**
 * How long a process has to beat after it was prompted through the store, ms. The coordination service may be wrong about a process, or
 * another client may write to it, so a session that the service does not show is prompted before it is ended. A live process beats within
 * milliseconds.
 */
export const answerMs = (timeoutMs: number): number => Math.min(timeoutMs / 3, 2_000);

/** Opens a session. If a member already has the name, it first gets its timeout to show that it lives. */
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
          // A provider that cannot answer is no evidence against the holder, so the time counts from the moment when it can answer.
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
 * Returns true if the witness reports that the member is gone; false without a witness, or while the witness cannot tell.
 * @param unsure called when the witness cannot tell
 */
export async function isGone(
  options: JoinOptions,
  member: Member,
  unsure = (error: unknown) => cannotTell(options, member, error),
): Promise<boolean> {
  try {
    return (await options.witness?.gone([member.sessionId]))?.includes(member.sessionId) ?? false;
  } catch (error) {
    unsure(error);
    return false;
  }
}

function cannotTell({ log }: JoinOptions, { node }: Member, error: unknown): void {
  log.warn({ node, error: messageOf(error) }, "cannot tell whether the name's holder lives");
}
