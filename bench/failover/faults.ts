import { setTimeout as pause } from "node:timers/promises";
import type { Cluster } from "../cluster/cluster.ts";
import type { BenchNode } from "../cluster/node.ts";

export interface Fault {
  readonly name: string;
  /** True if the fault is possible only with a coordination service. */
  readonly ofService?: boolean;
  readonly graceful?: boolean;
  /** True if a new process replaces the victim after the fault. */
  readonly replaced?: boolean;
  /** The approximate duration of one round in ms, for the estimate that the bench prints. */
  readonly aboutMs: number;
  /** True if the victim continues its claimed runs, so that the lateness of these runs counts as well. */
  readonly livesOn?: boolean;
  inflict(victim: BenchNode, round: number): Promise<void> | void;
  /** Ends the fault; called once another node leads. `sinceMs` is the time of the fault in epoch ms. */
  mend(cluster: Cluster, victim: BenchNode, sinceMs: number): Promise<void> | void;
}

export const sessionTimeoutMs = 10_000;

const replace = async (cluster: Cluster, victim: BenchNode) => {
  await cluster.remove(victim);
  await cluster.add();
};
/** Alternates between two kinds of network fault: refused connections in odd rounds, a network that drops everything in even ones. */
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
