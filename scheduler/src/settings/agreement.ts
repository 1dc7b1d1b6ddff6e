import { formatDuration } from "../base/duration.ts";
import type { SessionIdentity } from "../cluster/session-store.ts";
import { isLoopback } from "./address.ts";
import { beatMsOf } from "./settings.ts";

/** The leader plans again when less than this share of the horizon is left. */
export const refill = 0.75;
/** A larger difference between this machine's clock and the store's is logged at the start. */
const clockBoundMs = 5_000;
/** A larger uncertainty about the store's time is logged at the start. */
const uncertainMs = 1_000;

export type Told = Pick<SessionIdentity, "node" | "role" | "host" | "timeoutMs" | "settings">;

/** A conflict between the settings of two live processes. */
export interface Disagreement {
  code: "SETTINGS_DIFFER" | "NODE_ADDRESS_TAKEN";
  setting: "retention" | "sessionTimeout" | "address";
  /** The conflict in words, with both nodes and both values. */
  found: string;
  advice: string;
  /** True if the later process must not run beside the earlier one. */
  refused: boolean;
}

/**
 * Compares a process's settings with those of a process that started before it. Most settings concern one process only: a session is judged
 * by the timeout in its own row, and `claimAhead` and `concurrency` concern one worker. Three settings concern several processes:
 * - The address must lead to one process. An address that leads every machine to itself (localhost) means another process on each host, so
 *   it does not lead to a process on another host: a later process with such an address is refused, an earlier one is logged.
 * - Retention: the leader drops data older than its own retention, so the shortest retention of the scheduler nodes applies to all. A
 *   process that would drop data that the others keep is refused, because dropped data cannot be restored; for a process that would keep
 *   data longer, a log line says that this has no effect.
 * - The leader's horizon must last until its death has been noticed and another node has planned: its own timeout and a beat of the other
 *   node. If it is shorter, the catch-up planner still plans every slot, so this is logged and not refused.
 * The last two concern only processes that may lead: a worker or an observer plans nothing and drops nothing.
 */
export function disagreements(elder: Told, other: Told): Disagreement[] {
  const found: Disagreement[] = addresses(elder, other);
  // A process of an old version reports no settings, so they are unknown.
  if (!elder.settings || !other.settings || !mayLead(elder) || !mayLead(other)) return found;
  const [kept, wanted] = [elder.settings.retentionMs, other.settings.retentionMs];
  if (kept !== wanted) {
    found.push({
      code: "SETTINGS_DIFFER",
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
      code: "SETTINGS_DIFFER",
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

export const mayLead = ({ role, settings }: Told) => role === "node" && settings?.observer !== true;

function addresses(elder: Told, other: Told): Disagreement[] {
  const [theirs, mine] = [elder.settings?.address, other.settings?.address];
  const apart = elder.host !== other.host;
  if (theirs && theirs === mine && !(apart && isLoopback(theirs)))
    return [
      {
        code: "NODE_ADDRESS_TAKEN",
        setting: "address",
        found: `${elder.node} on ${elder.host} is reached at ${theirs}, and so would ${other.node} on ${other.host} be`,
        advice: "Give each process an address of its own; two on one machine need two ports.",
        refused: true,
      },
    ];
  const found: Disagreement[] = [];
  for (const [own, process, witness] of [
    [mine, other, elder],
    [theirs, elder, other],
  ] as const) {
    if (!apart || !own || !isLoopback(own)) continue;
    found.push({
      code: "SETTINGS_DIFFER",
      setting: "address",
      found: `${process.node} on ${process.host} says that it is reached at ${own}, which leads ${witness.node} on ${witness.host} to itself`,
      advice: `Give ${process.node} an address that other machines reach, or none.`,
      refused: process === other,
    });
  }
  return found;
}

/**
 * Problems of this machine's wall clock. The clock decides nothing, but logs with its times are read beside those of other machines.
 * @returns lines to log
 */
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
