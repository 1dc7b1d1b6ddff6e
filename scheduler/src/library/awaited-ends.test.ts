import { expect, test } from "vitest";
import { VirtualClock } from "../../test/support/virtual-clock.ts";
import { CarillonError } from "../base/errors.ts";
import type { Signal } from "../cluster/signal-store.ts";
import type { RunEnd } from "../run/run-end.ts";
import type { Store } from "../store/store.ts";
import { AwaitedEnds } from "./awaited-ends.ts";

const endOf = (runId: number): RunEnd => ({
  runId,
  outcome: "succeeded",
  task: "t",
  result: runId,
  error: null,
  kept: true,
});

/** A fake store in which runs end, and in which the ends are signalled, only when the test says so. */
class Ends {
  readonly clock = new VirtualClock(1_000_000);
  readonly over = new Set<number>();
  readonly put: number[] = [];
  asked = 0;
  away = false;
  /** Called before each response of the store. */
  onAsked: () => void = () => undefined;
  listener: ((signal: Signal) => void) | undefined;
  readonly ends: AwaitedEnds;

  constructor() {
    const answer = <T>(value: () => T): Promise<T> => {
      this.asked++;
      return this.away ? Promise.reject(new CarillonError("STORE_UNREACHABLE", "away")) : Promise.resolve(value());
    };
    const runs = {
      awaitEnds: (runIds: number[]) => answer(() => void this.put.push(...runIds)),
      ends: (runIds: number[]) => {
        const answered = answer(() => runIds.filter((id) => this.over.has(id)).map(endOf));
        this.onAsked();
        return answered;
      },
    };
    const signals = {
      listen: async (listener: (signal: Signal) => void, signal: AbortSignal) => {
        this.listener = listener;
        signal.addEventListener("abort", () => {
          this.listener = undefined;
        });
      },
    };
    this.ends = new AwaitedEnds({
      clock: this.clock,
      now: () => this.clock.wall(),
      open: async () => ({ runs, signals }) as unknown as Store,
    });
  }

  async passing(ms: number): Promise<void> {
    this.clock.advance(ms);
    await quiet();
  }
}

/** Waits 5 ms, by which time all asynchronous work that has begun has finished or waits for the test. */
const quiet = () => new Promise((resolve) => setTimeout(resolve, 5));

test("an awaited end is received through a signal, with one query for all runs in the signal", async () => {
  const stage = new Ends();
  const told = Promise.all([1, 2, 3].map((id) => stage.ends.wait(id, 0)));
  await quiet();
  await stage.passing(600);
  expect(stage.put).toEqual([1, 2, 3]);
  const before = stage.asked;
  for (const id of [1, 2, 3]) stage.over.add(id);
  stage.listener?.({ kind: "ended", runIds: [3, 99, 1, 2] });
  expect((await told).map(({ result }) => result)).toEqual([1, 2, 3]);
  expect(stage.asked - before).toBe(1);
});

test("a run that ends during registration is found a moment later, and one with a lost signal within 5 s", async () => {
  const stage = new Ends();
  stage.onAsked = () => stage.over.add(1);
  const first = stage.ends.wait(1, 0);
  await quiet();
  await stage.passing(5);
  expect((await first).result).toBe(1);
  stage.onAsked = () => undefined;
  const second = stage.ends.wait(2, 0);
  await quiet();
  await stage.passing(600);
  stage.over.add(2);
  await stage.passing(5_000);
  expect((await second).result).toBe(2);
});

test("lost signals are made up for once signals are received again", async () => {
  const stage = new Ends();
  const told = stage.ends.wait(7, 0);
  await quiet();
  stage.over.add(7);
  stage.listener?.({ kind: "resync" });
  expect((await told).result).toBe(7);
});

test("while the store is away, the query is repeated and no wait ends", async () => {
  const stage = new Ends();
  stage.away = true;
  stage.over.add(1);
  let isTold = false;
  const told = stage.ends.wait(1, 0).then(() => {
    isTold = true;
  });
  await quiet();
  for (let i = 0; i < 5; i++) await stage.passing(500);
  expect(isTold).toBe(false);
  stage.away = false;
  await stage.passing(500);
  await told;
});

test("ten thousand waits cost ten statements every 5 s, and are registered again each minute", async () => {
  const stage = new Ends();
  const waits: Promise<RunEnd>[] = [];
  for (let id = 1; id <= 10_000; id++) waits.push(stage.ends.wait(id, 0));
  await quiet();
  await stage.passing(600);
  expect(stage.put).toHaveLength(10_000);
  const before = stage.asked;
  for (let second = 0; second < 60; second++) await stage.passing(1_000);
  expect(stage.put).toHaveLength(20_000);
  // 12 polls in a minute, each with 10 statements for 20,000 runs, plus 10 statements that register the waits again.
  expect(stage.asked - before).toBe(12 * 10 + 10);
  const ends = Promise.allSettled(waits);
  stage.ends.close(new Error("over"));
  expect((await ends).every(({ status }) => status === "rejected")).toBe(true);
});

test("aborting one wait leaves the run's other waits; 1 s after the last wait the listener is removed", async () => {
  const stage = new Ends();
  const given = new AbortController();
  const gives = expect(stage.ends.wait(1, 0, given.signal)).rejects.toThrow("enough");
  const stays = stage.ends.wait(1, 0);
  await quiet();
  given.abort(new Error("enough"));
  await gives;
  stage.over.add(1);
  stage.listener?.({ kind: "ended", runIds: [1] });
  expect((await stays).result).toBe(1);
  await stage.passing(900);
  expect(stage.listener).toBeDefined();
  await stage.passing(100);
  expect(stage.listener).toBeUndefined();
  const again = stage.ends.wait(1, 0);
  expect((await again).result).toBe(1);
  expect(stage.listener).toBeDefined();
  const open = expect(stage.ends.wait(2, 0)).rejects.toThrow("stopped");
  stage.ends.close(new Error("stopped"));
  await open;
  await expect(stage.ends.wait(3, 0)).rejects.toThrow("stopped");
});

test("an error of the store goes to the waits whose runs were queried", async () => {
  const stage = new Ends();
  stage.onAsked = () => {
    throw new CarillonError("STORE_REFUSED", "no right");
  };
  await expect(stage.ends.wait(1, 0)).rejects.toMatchObject({ code: "STORE_REFUSED" });
});
