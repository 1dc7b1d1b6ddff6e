import { describe, expect, it } from "vitest";
import { recordingLog } from "../../test/support/store-stage.ts";
import { VirtualClock } from "../../test/support/virtual-clock.ts";
import type { Pulse } from "../cluster/session-store.ts";
import type { TaskChange } from "../task/task-record.ts";
import { Reconciler } from "./reconciler.ts";

const hourMs = 3_600_000;
const beatMs = 3_000;

/** A process that receives no signals, beside a store whose cluster time the test steps. */
class Stage {
  readonly clock = new VirtualClock(Date.UTC(2026, 10, 30));
  readonly #changes: TaskChange[] = [];
  readonly #known = new Map<number, number>();
  #stepMs = 0;
  #pulse: (pulse: Pulse) => void = () => undefined;

  constructor() {
    new Reconciler({
      store: {
        tasks: { changedSince: async (fromMs) => this.#changes.filter(({ changedMs }) => changedMs >= fromMs) },
      },
      membership: {
        onPulse: (listener) => {
          this.#pulse = listener;
        },
      },
      definitions: {
        size: 0,
        follow: async (changes) => changes.forEach(({ taskId, version }) => void this.#known.set(taskId, version)),
      },
      clock: this.clock,
      storeClock: { now: () => this.nowMs },
      log: recordingLog().log,
      onChanged: () => undefined,
    });
  }

  get nowMs(): number {
    return this.clock.wall() + this.#stepMs;
  }

  step(ms: number): void {
    this.#stepMs += ms;
  }

  /** Commits a change now. @param changedMs its timestamp, in the cluster time that its author knows */
  change(taskId: number, version: number, changedMs: number): void {
    this.#changes.push({ taskId, version, changedMs });
  }

  known(taskId: number): number | undefined {
    return this.#known.get(taskId);
  }

  async beat(): Promise<void> {
    this.clock.advance(beatMs);
    this.#pulse({ changes: String(this.#changes.length) } as Pulse);
    await new Promise(setImmediate);
    this.clock.advance(50);
    await new Promise(setImmediate);
  }
}

describe("a step of cluster time", () => {
  it("back by an hour: the first change after it arrives with the next heartbeat", async () => {
    const stage = new Stage();
    stage.change(1, 1, stage.nowMs);
    await stage.beat();
    expect(stage.known(1)).toBe(1);
    stage.step(-hourMs);
    await stage.beat();
    stage.change(1, 2, stage.nowMs);
    await stage.beat();
    expect(stage.known(1)).toBe(2);
  });

  it("forward by an hour: a change by a process that has not yet received the step arrives with the next heartbeat", async () => {
    const stage = new Stage();
    await stage.beat();
    const authorMs = () => stage.nowMs - hourMs;
    stage.step(hourMs);
    stage.change(1, 1, stage.nowMs);
    await stage.beat();
    stage.change(2, 1, authorMs());
    await stage.beat();
    expect([stage.known(1), stage.known(2)]).toEqual([1, 1]);
  });

  it("forward while the process was cut off: changes from before the step arrive when it is back", async () => {
    const stage = new Stage();
    await stage.beat();
    stage.clock.advance(hourMs);
    stage.change(1, 1, stage.nowMs);
    stage.clock.advance(hourMs);
    stage.step(5 * hourMs);
    await stage.beat();
    expect(stage.known(1)).toBe(1);
  });

  it("queries reach back five minutes again, not hours, once a step is ten minutes old", async () => {
    const stage = new Stage();
    stage.step(hourMs);
    for (let i = 1; i < 250; i++) {
      stage.change(1, i, stage.nowMs);
      await stage.beat();
    }
    stage.change(2, 1, stage.nowMs - hourMs);
    await stage.beat();
    expect(stage.known(2)).toBeUndefined();
  });
});
