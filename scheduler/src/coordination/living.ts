import { type Clock, pause } from "../base/clock.ts";
import { CarillonError } from "../base/errors.ts";
import type { Member, SessionStore } from "../cluster/session-store.ts";
import { longestBeatMs } from "../settings/settings.ts";

const lookMs = 250;
/**
 * If the pause between two looks was longer than this many ms, counting begins again, because a member whose beat stood still may only have
 * lost the store, as this process did.
 */
const blindMs = 1_500;

/**
 * Watches the beats of members that block this process. A session's row outlives its process until another member finds it silent; if all
 * processes have died, no member does. So a member that blocks this process gets its timeout to show by its beat that it lives.
 * @param concerns selects the members to watch
 * @returns the first member that lives; else all members whose beat stood still for their timeout, with that beat
 */
export async function watchBeats(
  sessions: SessionStore,
  concerns: (member: Member) => boolean,
  clock: Clock,
  signal?: AbortSignal,
): Promise<{ living: Member } | { silent: Member[] }> {
  const seen = new Map<number, { beat: number; sinceMono: number }>();
  let lookedMono = clock.monotonic();
  for (;;) {
    const members = (await sessions.members()).members.filter(concerns);
    const mono = clock.monotonic();
    if (mono - lookedMono > blindMs) seen.clear();
    lookedMono = mono;
    let doubtful = false;
    for (const member of members) {
      const known = seen.get(member.sessionId);
      if (known && known.beat !== member.beat) return { living: member };
      if (!known) seen.set(member.sessionId, { beat: member.beat, sinceMono: mono });
      doubtful ||= mono - (known?.sinceMono ?? mono) < silenceOf(member);
    }
    if (!doubtful) return { silent: members };
    await pause(clock, lookMs, signal);
    if (signal?.aborted) throw new CarillonError("STOPPED", "stopped while joining");
  }
}

/** A member shown by a service may beat rarely, however short its timeout is, so it gets at least the longest beat interval. */
const silenceOf = ({ timeoutMs, witnessed }: Member) =>
  witnessed ? Math.max(timeoutMs, longestBeatMs + blindMs) : timeoutMs;
