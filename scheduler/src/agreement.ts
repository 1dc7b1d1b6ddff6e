import { formatDuration } from "./duration.ts";
import { beatMsOf } from "./settings.ts";
import type { SessionIdentity } from "./store.ts";

/** The leader plans again when less than this part of the horizon is left. */
export const refill = 0.75;
/** A clock further from the store's than this is told of at the start. */
const clockBoundMs = 5_000;
/** So is not knowing the store's time better than this. */
const uncertainMs = 1_000;

export type Told = Pick<SessionIdentity, "node" | "role" | "timeoutMs" | "settings">;

/** Two live processes whose settings do not go together. */
export interface Disagreement {
  setting: "retention" | "sessionTimeout";
  /** Both nodes and both values. */
  found: string;
  advice: string;
  /** The second must not run beside the first. */
  refused: boolean;
}

/**
 * Compares what a process is set to with what another that was there before is. Most settings are each process's own:
 * a session is judged by the timeout in its own row, `claimAhead` and `concurrency` concern one worker. Two are not:
 *
 * - retention: whoever leads drops what is older than its own, so the shortest of the scheduler nodes' holds for all. One
 *   that would drop what the others keep is refused, since nothing brings it back; one that keeps more is told that it
 *   will not.
 * - the leader's horizon must last until its death was noticed and another has planned: its own timeout and a beat of
 *   the other. If not, every slot is still planned by a rescuer, so it is told and not refused.
 */
export function disagreements(elder: Told, other: Told): Disagreement[] {
  const found: Disagreement[] = [];
  // A process of a version before the settings were told: nothing is known of it.
  if (!elder.settings || !other.settings || elder.role !== "node" || other.role !== "node") return found;
  const [kept, wanted] = [elder.settings.retentionMs, other.settings.retentionMs];
  if (kept !== wanted) {
    found.push({
      setting: "retention",
      found: `retention is ${formatDuration(kept)} on ${elder.node} and ${formatDuration(wanted)} on ${other.node}`,
      advice:
        "Whichever leads drops what is older than its own. Give every scheduler node the same retention; to shorten it, stop them all first.",
      refused: wanted < kept,
    });
  }
  for (const [leader, observer] of [
    [elder, other],
    [other, elder],
  ] as const) {
    const lasts = (leader.settings?.horizonMs ?? 0) * refill;
    const needed = leader.timeoutMs + beatMsOf(observer.timeoutMs);
    if (lasts >= needed) continue;
    found.push({
      setting: "sessionTimeout",
      found:
        `${leader.node} plans ${formatDuration(leader.settings?.horizonMs ?? 0)} ahead with a session timeout of ` +
        `${formatDuration(leader.timeoutMs)}, and ${observer.node}'s is ${formatDuration(observer.timeoutMs)}: should ` +
        `${leader.node} die, what it planned may end before ${observer.node} notices`,
      advice: `Bring the session timeouts closer, or give ${leader.node} a horizon of ${formatDuration(Math.ceil(needed / refill))} or more.`,
      refused: false,
    });
  }
  return found;
}

/** This machine's wall clock decides nothing, but its logs are read beside those of others. @returns what to tell */
export function clockTroubles({ wallOffsetMs, errorMs }: { wallOffsetMs: number; errorMs: number }): string[] {
  const seconds = (ms: number) => `${(Math.abs(ms) / 1_000).toFixed(1)} s`;
  const found: string[] = [];
  if (Math.abs(wallOffsetMs) - errorMs > clockBoundMs)
    found.push(
      `this machine's clock is ${seconds(wallOffsetMs)} ${wallOffsetMs > 0 ? "behind" : "ahead of"} the store's; ` +
        "tasks fire by the store's all the same. Turn on NTP",
    );
  if (errorMs > uncertainMs)
    found.push(`the store answers slowly: this process knows the store's time only to ${seconds(errorMs)}`);
  return found;
}
