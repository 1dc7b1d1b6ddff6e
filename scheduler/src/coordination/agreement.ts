import { clockBoundMs, disagreements } from "../agreement.ts";
import { pause } from "../clock.ts";
import type { Membership } from "../coordination.ts";
import { CarillonError, isCarillonError, messageOf } from "../errors.ts";
import type { Member } from "../store.ts";
import { firstLiving } from "./living.ts";
import { type JoinOptions, joinCluster } from "./membership.ts";

const retryMs = 250;
const slowAnswerMs = 1_000;

/**
 * Joins, and leaves again if this process's settings must not stand beside those of one that was there before. Compared
 * only once its own row is there: of two that start at once, the later one sees the earlier.
 * @throws NODE_NAME_TAKEN, SETTINGS_DIFFER
 */
export async function joinAgreeing(options: JoinOptions, signal?: AbortSignal): Promise<Membership> {
  const membership = await joinCluster(options, signal);
  try {
    tellClock(options);
    await agreeOnSettings(options, membership.sessionId, signal);
    return membership;
  } catch (error) {
    await membership.leave("its settings differ from the others'");
    throw error;
  }
}

async function agreeOnSettings(options: JoinOptions, sessionId: number, signal?: AbortSignal): Promise<void> {
  const { store, clock, identity, log } = options;
  const withMe = (member: Member) => (member.sessionId < sessionId ? disagreements(member, identity) : []);
  for (let first = true; ; first = false) {
    try {
      const { members } = await store.sessions.members();
      for (const { found, advice, refused } of first ? members.flatMap(withMe) : [])
        if (!refused) log.warn({ code: "SETTINGS_DIFFER", advice }, found);
      const refuses = (member: Member) => withMe(member).some(({ refused }) => refused);
      const elder = members.some(refuses) ? await firstLiving(store.sessions, refuses, clock, signal) : undefined;
      const why = elder && withMe(elder).find(({ refused }) => refused);
      if (!elder || !why) return;
      throw new CarillonError("SETTINGS_DIFFER", `${why.found} (live: pid ${elder.pid} on ${elder.host})`, {
        hint: why.advice,
      });
    } catch (error) {
      // The session lives on meanwhile, or is found ended and opened anew; what was asked is still to be asked.
      if (!isCarillonError(error, "STORE_UNREACHABLE") || signal?.aborted) throw error;
      log.warn({ error: messageOf(error) }, "cannot compare settings with the others'; trying again");
      await pause(clock, retryMs, signal);
    }
  }
}

/** This machine's wall clock decides nothing, but its logs are read beside those of others. */
function tellClock({ storeClock, log }: JoinOptions): void {
  const { wallOffsetMs, errorMs } = storeClock;
  const rightTo = { offsetMs: Math.round(wallOffsetMs), rightToMs: Math.ceil(errorMs) };
  if (Math.abs(wallOffsetMs) - errorMs > clockBoundMs) {
    log.warn(
      rightTo,
      `this machine's clock is ${(Math.abs(wallOffsetMs) / 1_000).toFixed(1)} s ${wallOffsetMs > 0 ? "behind" : "ahead of"} the store's; tasks fire by the store's all the same. Turn on NTP`,
    );
  }
  if (errorMs > slowAnswerMs)
    log.warn(rightTo, "the store answers slowly: this process knows its time only to about a second or worse");
}
