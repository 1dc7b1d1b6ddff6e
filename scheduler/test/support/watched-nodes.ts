import { expect } from "vitest";
import { type Carillon, carillon } from "../../src/library/carillon.ts";
import type { Run } from "../../src/run/handler.ts";
import { every } from "../../src/schedule/schedule.ts";
import { recordingLog } from "./store-stage.ts";

/** A record of one attempt of a run, made by the handler. */
export interface Began {
  readonly task: "tick" | "once" | "long";
  readonly run: number;
  readonly fence: number;
  readonly slotMs: number | null;
  readonly atMs: number;
}

export const tickMs = 100;

/** Two nodes of one cluster whose handlers record their starts in memory, independently of the store. */
export class WatchedNodes {
  readonly began: Began[] = [];
  readonly acknowledged: number[] = [];
  readonly nodes: readonly [Carillon, Carillon];
  readonly lines: ReturnType<typeof recordingLog>["lines"];

  /** @param sessionTimeout longer than the expected outage of the store, so that no session ends and no run starts again */
  constructor(store: string, sessionTimeout = "10s") {
    const { log, lines } = recordingLog();
    this.lines = lines;
    this.nodes = ["first", "second"].map((name) => {
      const tower = carillon({ store, name, handleSignals: false, sessionTimeout, log });
      const note = (run: Run) =>
        this.began.push({
          task: run.task as Began["task"],
          run: run.id,
          fence: run.fence,
          slotMs: run.slot?.getTime() ?? null,
          atMs: Date.now(),
        });
      tower.task("tick", { schedule: every(tickMs), misfire: "all" }, note);
      tower.task("once", {}, note);
      tower.task("long", {}, async (run) => {
        note(run);
        await new Promise<void>((resolve) => {
          run.signal.addEventListener("abort", () => resolve(), { once: true });
          setTimeout(resolve, 6_000);
        });
      });
      return tower;
    }) as [Carillon, Carillon];
  }

  async start(): Promise<void> {
    await Promise.all(this.nodes.map((tower) => tower.start()));
  }

  async stop(): Promise<void> {
    await Promise.all(this.nodes.map((tower) => tower.stop()));
  }

  async enqueue(task: "once" | "long", options: { in?: string } = {}): Promise<number> {
    const { runId } = await this.nodes[0].enqueue(task, null, options as object);
    this.acknowledged.push(runId);
    return runId;
  }

  /** Returns the acknowledged runs that no handler has started. */
  unseen(): number[] {
    const seen = new Set(this.began.map(({ run }) => run));
    return this.acknowledged.filter((run) => !seen.has(run));
  }

  /** Returns the number of slots between the first and the last fired slot that have not fired. */
  gaps(): number {
    const slots = new Set(this.began.flatMap(({ slotMs }) => (slotMs === null ? [] : [slotMs])));
    return (Math.max(...slots) - Math.min(...slots)) / tickMs + 1 - slots.size;
  }

  /** Expects of all records so far that no slot, run or fence occurs twice, and that no slot is left out between the first and the last. */
  expectOnce(): void {
    const twice = <Key>(keys: Key[]) => keys.filter((key, i) => keys.indexOf(key) !== i);
    const slots = this.began.flatMap(({ slotMs }) => (slotMs === null ? [] : [slotMs])).sort((a, b) => a - b);
    expect(twice(slots), "slots fired twice").toEqual([]);
    expect(twice(this.began.map(({ run }) => run)), "runs begun twice").toEqual([]);
    expect(twice(this.began.map(({ fence }) => fence)), "fences given out twice").toEqual([]);
    expect(slots, "every slot").toEqual(slots.map((_, n) => (slots[0] as number) + n * tickMs));
  }
}
