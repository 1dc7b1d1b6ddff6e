import type { Dice } from "../../../simulation/src/plan/dice.ts";
import type { Cluster } from "../cluster.ts";
import type { Line, Trouble } from "../line.ts";
import type { Member } from "../member.ts";
import { type Fault, together } from "./fault.ts";

function trouble(cluster: Cluster, whose: string, lines: readonly Line[], what: Trouble) {
  const { dice: _, ...told } = what as Trouble & { dice?: Dice };
  cluster.happened(`lines of ${whose}: ${JSON.stringify(told)}`);
  return together(lines.map((line) => line.trouble(what)));
}

/**
 * Raises the cluster's allowed clock error. An answer that is late by `ms` makes an estimate of the store's time wrong by up to
 * half of that; a delay above 5 s counts as 5 s.
 */
function lateBy(cluster: Cluster, ms: number): void {
  cluster.clockErrorMs = Math.max(cluster.clockErrorMs, 100 + Math.min(ms, 5_000) / 2);
}

const silent = (cluster: Cluster, dice: Dice, forMs: number, way: "both" | "toServer" | "toClient"): Trouble => {
  lateBy(cluster, forMs);
  return { kind: "silent", way, late: dice.chance(0.5) };
};

const slow = (cluster: Cluster, dice: Dice): Trouble => {
  const ms = Math.round(dice.between(20, 300));
  lateBy(cluster, 2 * ms);
  return { kind: "slow", ms, bytesPerSecond: dice.one([Number.POSITIVE_INFINITY, 200_000]) };
};

type Lines = "store" | "coordination" | "servers";
const linesOf = (member: Member, which: Lines): readonly Line[] =>
  which === "store" ? (member.store ? [member.store] : []) : member[which];

/**
 * Returns the proxied connections of the kind `which`: those of the leader and of a random worker; for "servers" those of two
 * remote workers.
 */
async function some(cluster: Cluster, dice: Dice, which: Lines): Promise<{ whose: string; lines: Line[] }> {
  const members =
    which === "servers"
      ? cluster.of("remote worker").slice(0, 2)
      : [await cluster.leader(), dice.one(cluster.of("worker"))];
  const whose = members.map(({ name }) => name).join(" and ");
  return { whose, lines: members.flatMap((member) => linesOf(member, which)) };
}

const everyLine = (cluster: Cluster, which: Lines) => cluster.members.flatMap((member) => linesOf(member, which));

function faultsOf(which: Lines, to: string, needs?: "service"): Fault[] {
  const only = needs ? { needs } : {};
  return [
    {
      name: `${which}-cut`,
      what: `connections to ${to} break, and none can be made: the leader's and a worker's`,
      ...only,
      async inflict(cluster, dice) {
        const { whose, lines } = await some(cluster, dice, which);
        return trouble(cluster, whose, lines, { kind: "cut" });
      },
    },
    {
      name: `${which}-silent`,
      what: `nothing passes to or from ${to}, and no connection ends; afterwards what waited arrives, or is lost`,
      ...only,
      async inflict(cluster, dice, forMs) {
        const { whose, lines } = await some(cluster, dice, which);
        return trouble(cluster, whose, lines, silent(cluster, dice, forMs, "both"));
      },
    },
    {
      name: `${which}-one-way`,
      what: `one direction of the lines to ${to} is silent`,
      ...only,
      async inflict(cluster, dice, forMs) {
        const { whose, lines } = await some(cluster, dice, which);
        return trouble(
          cluster,
          whose,
          lines,
          silent(cluster, dice, forMs, dice.one(["toServer", "toClient"] as const)),
        );
      },
    },
    {
      name: `${which}-slow`,
      what: `everybody's way to ${to} is slow, and narrow`,
      ...only,
      inflict: async (cluster, dice) => trouble(cluster, "all", everyLine(cluster, which), slow(cluster, dice)),
    },
    {
      name: `${which}-answers-lost`,
      what: `what is asked of ${to} is done, and the answer never comes, or half of it`,
      ...only,
      async inflict(cluster, dice) {
        const chance = dice.one([0.02, 0.1, 0.3]);
        return trouble(cluster, "all", everyLine(cluster, which), {
          kind: "answers lost" as const,
          chance,
          part: dice.chance(0.4),
          dice,
        });
      },
    },
  ];
}

/** Faults of the network connections between processes. */
export const lineFaults: readonly Fault[] = [
  ...faultsOf("store", "the store"),
  ...faultsOf("coordination", "the coordination service", "service"),
  ...faultsOf("servers", "the servers of remote workers"),
  {
    name: "everyone-cut",
    what: "nobody reaches the store",
    inflict: async (cluster) => trouble(cluster, "all", everyLine(cluster, "store"), { kind: "cut" }),
  },
];
