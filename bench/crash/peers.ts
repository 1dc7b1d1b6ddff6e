/**
 * The same with a peer: one of two workers dies with runs in flight; how long until the other begins them? A peer detects a death by a lock
 * that is not renewed, or by the maximum time of a job. These stay at their defaults; the peer's other settings are those against lateness.
 * A job's first beginning is in the dead process, its second in the other one.
 */
import { setTimeout as pause } from "node:timers/promises";
import { Arena } from "../contest/arena.ts";
import { contenders } from "../contest/contender.ts";
import type { Figures } from "../measure/figures.ts";

/** No more than the smallest number that one of them begins at once. */
const inFlight = 20;
const patienceMs = 120_000;
const lookMs = 50;

/** @returns by peer; without `rerun_after_ms` if some had not begun again after two minutes */
export async function crashPeers(): Promise<Record<string, Figures>> {
  const found: Record<string, Figures> = {};
  for (const who of contenders) if (who !== "carillon") found[who] = await crash(who);
  return found;
}

async function crash(who: string): Promise<Figures> {
  const arena = await Arena.open({ who, profile: "prompt" });
  try {
    const [adds, victim] = [await arena.enter("adds"), await arena.enter("runs")];
    // All runs are added before the victim begins, so that a worker that takes a batch at a time takes all of them.
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
