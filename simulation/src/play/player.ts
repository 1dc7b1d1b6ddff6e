/** A process that plays the seeds that its parent sends, one after the other, and reports each result. */

import type { Violation } from "../history.ts";
import { planOf } from "../plan/plan.ts";
import { keepOnCore } from "../world/core.ts";
import { tripwire } from "../world/tripwire.ts";
import { taken } from "./sometimes.ts";
import { Stages } from "./stages.ts";

export interface Order {
  readonly url: string;
  /** Number of the process, from 0. */
  readonly player: number;
  readonly lengthMs: number;
  readonly full: boolean;
  /** null: there are no more seeds. */
  readonly seed: number | null;
}

export interface Told {
  readonly seed: number;
  readonly violation: Violation | undefined;
  readonly statements: number;
  readonly paths: string[];
  /** True if playing the seed a second time gave the same result; undefined: it was played only once. */
  readonly replayed: boolean | undefined;
}

const replayEvery = 50;
let stages: Stages | undefined;
tripwire.install();
// A seed creates many errors, and only the report of a single seed needs their stacks, so stacks are short.
Error.stackTraceLimit = 3;

async function play({ url, player, lengthMs, full, seed }: Order): Promise<void> {
  if (seed === null) {
    await stages?.close();
    process.disconnect();
    return;
  }
  if (!stages) {
    keepOnCore(player, process.pid);
    stages = await Stages.open(url, `${process.ppid}_${player}`, (pid) => keepOnCore(player, pid));
  }
  const plan = planOf(seed, lengthMs, full);
  const { violation, statements, hash, history } = await stages.play(plan);
  const again = seed % replayEvery === 0 ? await stages.play(plan) : undefined;
  const told: Told = { seed, violation, statements, paths: taken(history), replayed: again && again.hash === hash };
  process.send?.(told);
}

process.on("message", (order: Order) => {
  play(order).catch((error) => {
    process.stderr.write(`seed ${order.seed}: ${error instanceof Error ? error.stack : error}\n`);
    process.exit(1);
  });
});
// Ends this process when its parent has ended.
process.on("disconnect", () => process.exit(0));
