import { clockTroubles, disagreements } from "../agreement.ts";
import { pause } from "../clock.ts";
import type { Membership } from "../coordination.ts";
import { CarillonError, isCarillonError, messageOf } from "../errors.ts";
import type { Member } from "../store.ts";
import { firstLiving } from "./living.ts";
import { type JoinOptions, joinCluster } from "./membership.ts";

const retryMs = 250;

/**
 * Joins, and leaves again if this process's settings must not stand beside those of one that was there before. Compared
 * only once its own row is there: of two that start at once, the later one sees the earlier.
 * @throws NODE_NAME_TAKEN, SETTINGS_DIFFER
 */
export async function joinAgreeing(options: JoinOptions, signal?: AbortSignal): Promise<Membership> {
  const membership = await joinCluster(options, signal);
  try {
    const { wallOffsetMs, errorMs } = options.storeClock;
    for (const words of clockTroubles(options.storeClock))
      options.log.warn({ offsetMs: Math.round(wallOffsetMs), rightToMs: Math.ceil(errorMs) }, words);
    await agreeOnSettings(options, membership.sessionId, signal);
    return membership;
  } catch (error) {
    await membership.leave("its settings differ from the others'");
    throw error;
  }
}

async function agreeOnSettings(options: JoinOptions, sessionId: number, signal?: AbortSignal): Promise<void> {
  const { store, clock, storeClock, identity, log } = options;
  const withMe = (member: Member) => (member.sessionId < sessionId ? disagreements(member, identity) : []);
  const warned = new Set<string>();
  for (;;) {
    try {
      const { members } = await store.sessions.members();
      const heard = members.filter(({ seenMs, timeoutMs }) => storeClock.now() - seenMs <= timeoutMs);
      for (const { found, advice, refused } of heard.flatMap(withMe)) {
        if (!refused && !warned.has(found)) log.warn({ code: "SETTINGS_DIFFER", advice }, found);
        warned.add(found);
      }
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
