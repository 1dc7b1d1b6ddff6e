import { mayLead, type Told } from "../agreement.ts";

/**
 * Which processes of the cluster have alarm channels. A leader searches for the alarms of `rules` only if it has channels.
 * `told`: every process that may lead has channels. `partly`: some of these processes have no channels. `elsewhere`: only
 * processes that never lead have channels. `nobody`: no process has channels.
 */
export interface AlarmPlaces {
  kind: "told" | "partly" | "elsewhere" | "nobody";
  /**
   * For `partly`, the nodes that may lead and have no channels; for `elsewhere`, the nodes that have channels and never lead;
   * else empty.
   */
  nodes: string[];
}

/**
 * @param members the live members. A member of an older version does not report whether it has channels; it counts as having
 * channels
 */
export function alarmPlaces(members: readonly Told[]): AlarmPlaces {
  const has = ({ settings }: Told) => settings?.alarms !== false;
  const named = (some: readonly Told[]) => some.map(({ node }) => node).sort();
  const leaders = members.filter(mayLead);
  const without = leaders.filter((one) => !has(one));
  if (leaders.length > without.length)
    return without.length === 0 ? { kind: "told", nodes: [] } : { kind: "partly", nodes: named(without) };
  const useless = members.filter((one) => !mayLead(one) && one.settings?.alarms === true);
  return useless.length > 0 ? { kind: "elsewhere", nodes: named(useless) } : { kind: "nobody", nodes: [] };
}

export const alarmAdvice = {
  partly: "Give every process that may lead the same alarms: while one without leads, nothing is sent.",
  elsewhere: "Give the servers these alarms (--alarms FILE): workers and observers never look for them.",
  nobody: "Give the servers a file of channels: --alarms FILE; see docs/operate/alarms.md.",
} as const;
