import { formatDuration } from "../base/duration.ts";
import type { SessionIdentity } from "../cluster/session-store.ts";
import { isLoopback } from "./address.ts";
import { beatMsOf } from "./settings.ts";

/** The leader plans again once less than this share of its planning horizon is left. */
export const refill = 0.75;
/** The difference in ms between this machine's clock and the store's clock above which a line is logged at the start. */
const clockBoundMs = 5_000;
/** The uncertainty in ms about the store's time above which a line is logged at the start. */
const uncertainMs = 1_000;

export type Told = Pick<SessionIdentity, "node" | "role" | "host" | "timeoutMs" | "settings">;

/** A conflict between the settings of two processes that are alive. */
export interface Disagreement {
  code: "SETTINGS_DIFFER" | "NODE_ADDRESS_TAKEN";
  setting: "retention" | "sessionTimeout" | "address";
  /** A description of the conflict, with both nodes and both values. */
  found: string;
  advice: string;
  /** True if the process that started later must not join. */
  refused: boolean;
}

/**
 * Compares a process's settings with those of a process that started earlier. Most settings concern one process only: a session
 * is judged by its own timeout, and `claimAhead` and `concurrency` concern one worker. Three settings concern several processes:
 * - Address: it must lead to one process only. If two processes have the same address, the later process is refused. A loopback
 * address is useless to processes on other hosts: the later process is refused if it has such an address, and a line is logged if
 * the earlier has it.
 * - Retention: the leader deletes data older than its own retention, so the shortest retention of the scheduler nodes applies to
 * all. A later process with a shorter retention is refused, because deleted data cannot be restored. If its retention is longer,
 * a line is logged that the longer retention has no effect.
 * - Horizon: what the leader has planned must last until another node has noticed its death and planned: the leader's session
 * timeout plus a heartbeat interval of the other node. A shorter horizon is only logged, because the catch-up planner still plans
 * every slot. Retention and horizon concern only processes that may lead: workers and observers do not plan ahead and delete
 * nothing.
 */
export function disagreements(elder: Told, other: Told): Disagreement[] {
  const found: Disagreement[] = addresses(elder, other);
  // A process of an old version does not report its settings.
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
  for (const [own, process, reader] of [
    [mine, other, elder],
    [theirs, elder, other],
  ] as const) {
    if (!apart || !own || !isLoopback(own)) continue;
    found.push({
      code: "SETTINGS_DIFFER",
      setting: "address",
      found: `${process.node} on ${process.host} says that it is reached at ${own}, which leads ${reader.node} on ${reader.host} to itself`,
      advice: `Give ${process.node} an address that other machines reach, or none.`,
      refused: process === other,
    });
  }
  return found;
}

/**
 * Finds problems of this machine's wall clock. Scheduling does not depend on this clock, but the times in this machine's logs do,
 * and users compare them with the logs of other machines.
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
