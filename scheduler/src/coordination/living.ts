import { type Clock, pause } from "../base/clock.ts";
import { CarillonError } from "../base/errors.ts";
import type { Member, SessionStore } from "../cluster/session-store.ts";
import { longestBeatMs } from "../settings/settings.ts";

const lookMs = 250;
/**
 * If more than this many ms passed between two reads, the time without heartbeats is counted from zero again: a member without heartbeats
 * may only have lost its connection to the store, as this process did.
 */
const blindMs = 1_500;

/**
 * Watches the heartbeats of members that prevent this process from joining. The session row of a dead process remains until
 * another member notices the missing heartbeats, which never happens if all processes have died. So each such member gets its
 * timeout to send a heartbeat.
 * @param concerns selects the members to watch
 * @returns the first member that sends a heartbeat; or, once their timeouts have passed, all selected members, with their last
 * heartbeat counters
 * @throws STOPPED if the signal aborts; STORE_…
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

/**
 * The time without heartbeats after which a member counts as dead, in ms; longer for members listed by a service, which send them rarely.
 */
const silenceOf = ({ timeoutMs, witnessed }: Member) =>
  witnessed ? Math.max(timeoutMs, longestBeatMs + blindMs) : timeoutMs;
