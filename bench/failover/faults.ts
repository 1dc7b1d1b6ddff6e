import { setTimeout as pause } from "node:timers/promises";
import type { Cluster } from "../cluster/cluster.ts";
import type { BenchNode } from "../cluster/node.ts";

export interface Fault {
  readonly name: string;
  /** True if the fault needs a coordination service. */
  readonly ofService?: boolean;
  readonly graceful?: boolean;
  /** True if a new process replaces the victim. */
  readonly replaced?: boolean;
  /** About how long a round of it takes; for messages. */
  readonly aboutMs: number;
  /** Whether its victim continues with its claims, so that none of them may be late. */
  readonly livesOn?: boolean;
  inflict(victim: BenchNode, round: number): Promise<void> | void;
  /** Ends the fault; called once another node leads. */
  mend(cluster: Cluster, victim: BenchNode, sinceMs: number): Promise<void> | void;
}

export const sessionTimeoutMs = 10_000;

const replace = async (cluster: Cluster, victim: BenchNode) => {
  await cluster.remove(victim);
  await cluster.add();
};
/** Each kind of cut in turn: connections that break, and a network that swallows everything. */
const cut = (round: number) => (round % 2 === 1 ? "refuse" : "silence");

export const faults: readonly Fault[] = [
  {
    name: "killed",
    replaced: true,
    aboutMs: 14_000,
    inflict: (victim) => victim.signal("SIGKILL"),
    mend: replace,
  },
  {
    name: "paused",
    aboutMs: 15_000,
    inflict: (victim) => victim.signal("SIGSTOP"),
    async mend(_, victim, sinceMs) {
      await pause(Math.max(0, sinceMs + sessionTimeoutMs + 1_000 - Date.now()));
      victim.signal("SIGCONT");
    },
  },
  {
    name: "cut-coordination",
    ofService: true,
    livesOn: true,
    aboutMs: 15_000,
    inflict: (victim, round) => victim.coordination?.[cut(round)](),
    mend: (_, victim) => victim.coordination?.heal(),
  },
  {
    name: "cut-store",
    aboutMs: 14_000,
    inflict: (victim, round) => victim.store[cut(round)](),
    mend: (_, victim) => victim.store.heal(),
  },
  {
    name: "graceful",
    graceful: true,
    replaced: true,
    livesOn: true,
    aboutMs: 8_500,
    inflict: (victim) => victim.stop(),
    mend: replace,
  },
];
