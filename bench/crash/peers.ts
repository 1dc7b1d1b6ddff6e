/**
 * The same of a peer: one of two workers dies with its hands full; how long until the other begins what it had? A peer learns
 * of a death by a lock that is not renewed, or by a time that a job may take; that stands at its default, as the peer's other
 * settings are those against lateness. A job's first beginning is in the dead process, its second in the other one.
 */
import { setTimeout as pause } from "node:timers/promises";
import { Arena } from "../contest/arena.ts";
import { contenders } from "../contest/contender.ts";
import type { Figures } from "../measure/figures.ts";

/** No more than the least that one of them begins at once. */
const inFlight = 20;
const patienceMs = 120_000;
const lookMs = 50;

/** @returns by peer; without `rerun_after_ms` where not all had begun again after two minutes */
export async function crashPeers(): Promise<Record<string, Figures>> {
  const found: Record<string, Figures> = {};
  for (const who of contenders) if (who !== "carillon") found[who] = await crash(who);
  return found;
}

async function crash(who: string): Promise<Figures> {
  const arena = await Arena.open({ who, profile: "prompt" });
  try {
    const [adds, victim] = [await arena.enter("adds"), await arena.enter("runs")];
    // First, so that one whose worker takes a batch at a time takes them all.
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
