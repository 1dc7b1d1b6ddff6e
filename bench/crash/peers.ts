/**
 * The crash bench for a peer: one of two workers dies with runs in flight; how long until the other worker has started all of
 * them again? A peer detects the death by a lock that is no longer renewed, or by the maximum duration of a run. The durations of
 * lock and run stay at the peer's defaults; its other settings are those for low latency. Every run starts first in the worker
 * that dies, and again in the other worker.
 */
import { setTimeout as pause } from "node:timers/promises";
import { Arena } from "../contest/arena.ts";
import { contenders } from "../contest/contender.ts";
import type { Figures } from "../measure/figures.ts";

/** The number of runs in flight, low enough that every peer starts all of them at once. */
const inFlight = 20;
const patienceMs = 120_000;
const lookMs = 50;

/** @returns the figures by peer; `rerun_after_ms` is missing if some runs had not started again after two minutes */
export async function crashPeers(): Promise<Record<string, Figures>> {
  const found: Record<string, Figures> = {};
  for (const who of contenders) if (who !== "carillon") found[who] = await crash(who);
  return found;
}

async function crash(who: string): Promise<Figures> {
  const arena = await Arena.open({ who, profile: "prompt" });
  try {
    const [adds, victim] = [await arena.enter("adds"), await arena.enter("runs")];
    // All runs are added before the victim starts, so that a peer that fetches batches fetches all of them.
    await adds.ask("add", { from: 0, count: inFlight, batch: inFlight });
    await victim.ask("workWithoutEnd");
    await arena.handled([victim], inFlight);
    const heir = await arena.enter("runs");
    await heir.ask("workWithoutEnd");
    const killed = performance.now();
    await victim.close();
    for (;;) {
      const left = inFlight - (await heir.ask("handled"));
      const afterMs = performance.now() - killed;
      if (left <= 0) return { not_rerun_in_2_min: 0, rerun_after_ms: afterMs };
      if (afterMs > patienceMs) return { not_rerun_in_2_min: left };
      await pause(lookMs);
    }
  } finally {
    await arena.close();
  }
}
