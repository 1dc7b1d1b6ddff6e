import type { Checker } from "../history.ts";
import { claimsOf, sessionAt } from "./claims.ts";

/** The part in ms of a scheduler's safety margin that is left for errors of its own clock. */
const roundingMs = 20;

/** The value in coordination/trust.ts: a process stops trusting its session this many ms before the session times out. */
const marginMs = 500;

/**
 * Checks that a process starts runs only under claims of its own session, and not after this session was ended. Without a coordination
 * service, it checks also that no session is ended before its timeout, and that no run starts once the session is no longer trusted.
 */
export const trustKept: Checker = {
  invariant: "12: nothing starts on a session that is over, and none is over before its time",
  check(history) {
    const { applied, executions, dump, sessionTimeoutMs } = history;
    const claims = claimsOf(history);
    const ended = new Map<number, number>();
    const beats = new Map<number, number>();
    const allBeats = new Map<number, number[]>();
    const adoptions = applied.filter(({ name }) => name === "claim-adopt");
    for (const { name, values, rows, atMs } of applied) {
      const session = values[0] as number;
      if (name === "session-open" && rows.length > 0) beats.set(rows[0]?.id as number, atMs);
      if (name === "session-beat" && !ended.has(session)) {
        beats.set(session, atMs);
        const own = allBeats.get(session) ?? [];
        own.push(atMs);
        allBeats.set(session, own);
      }
      if (name !== "session-end" || rows.length === 0) continue;
      ended.set(session, atMs);
      const isOther = values[1] !== null;
      const silentMs = atMs - (beats.get(session) ?? 0);
      if (isOther && !history.coordination && silentMs < sessionTimeoutMs * (1 - 5e-4) - roundingMs)
        return { what: `session ${session} was ended ${Math.round(silentMs)} ms after its last beat`, atMs };
    }
    for (const { fence, run, startMs, node } of executions) {
      const claim = claims.get(fence);
      if (!claim) return { what: `${node} started fence ${fence}, which was never given`, run, atMs: startMs };
      if (claim.run !== run) return { what: `fence ${fence} is of run ${claim.run}`, run, atMs: startMs };
      const session = sessionAt(claim, adoptions, startMs);
      const endMs = ended.get(session);
      if (endMs !== undefined && endMs < startMs)
        return {
          what: `${node} started it ${Math.round(startMs - endMs)} ms after session ${session} had ended`,
          run,
          atMs: startMs,
        };
      const beatMs = allBeats.get(session)?.findLast((at) => at <= startMs);
      if (!history.coordination && beatMs !== undefined && startMs - beatMs > sessionTimeoutMs - marginMs + roundingMs)
        return {
          what: `${node} started it ${Math.round(startMs - beatMs)} ms after its last beat`,
          run,
          atMs: startMs,
        };
      const owner = dump.session.find(({ id }) => id === session);
      if (owner && owner.node !== node)
        return { what: `${node} started what ${owner.node} had claimed`, run, atMs: startMs };
    }
    return undefined;
  },
};
