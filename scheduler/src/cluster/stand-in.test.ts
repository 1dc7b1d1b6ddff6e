import { describe, expect, it } from "vitest";
import { SharedStanding } from "./stand-in.ts";

/** Generates all interleavings of the steps of the process and the thread; each side's own steps stay in order. */
function* orders(ours: number, theirs: number): Generator<("process" | "thread")[]> {
  if (ours === 0 && theirs === 0) yield [];
  if (ours > 0) for (const rest of orders(ours - 1, theirs)) yield ["process", ...rest];
  if (theirs > 0) for (const rest of orders(ours, theirs - 1)) yield ["thread", ...rest];
}

const fence = 7;
const place = 3;

/** Executes the steps of the process and of the thread that takes over, in the given order. */
function play(process: (() => boolean)[], thread: (() => boolean)[], order: readonly string[]) {
  const left = { process: [...process], thread: [...thread] };
  for (const who of order) {
    const steps = left[who as "process" | "thread"];
    // A step that returns false ends its side: that side takes no further steps.
    if (steps.length > 0 && !(steps.shift() as () => boolean)()) steps.length = 0;
  }
}

describe("a waiting claim while the stand-in thread takes over", () => {
  it.each([true, false])(
    "is never both started and returned, in any order of steps (process was away: %s)",
    (wasAway) => {
      let [startedSome, gaveSome] = [0, 0];
      const processSteps = wasAway ? 5 : 2;
      for (const order of orders(processSteps, 3)) {
        const shared = new SharedStanding();
        let [started, givenBack] = [false, false];
        let marks: Set<number> | null = null;
        const before = shared.returns;
        // The thread may have taken over while the process was blocked; the process checks for that before it starts the claim.
        const back = [
          () => {
            shared.takeBack();
            return true;
          },
          () => shared.returns === before,
        ];
        const start = [
          () => {
            shared.mark(place, fence);
            return true;
          },
          () => {
            started = !shared.acts;
            if (!started) shared.unmark(place);
            return true;
          },
        ];
        const process = wasAway ? [() => true, ...back, ...start] : start;
        const thread = [
          () => {
            shared.takeOver();
            return true;
          },
          () => {
            marks = shared.started();
            return !marks?.has(fence);
          },
          () => {
            givenBack = shared.returning();
            return true;
          },
        ];
        play(process, thread, order);
        expect(started && givenBack, order.join(" ")).toBe(false);
        startedSome += Number(started);
        gaveSome += Number(givenBack);
      }
      expect(Math.min(startedSome, gaveSome), "both occur").toBeGreaterThan(0);
    },
  );

  it("is not returned if a started claim could not be marked", () => {
    const shared = new SharedStanding();
    shared.countUnmarked(1);
    expect(shared.started()).toBeNull();
    shared.countUnmarked(-1);
    expect(shared.started()).toEqual(new Set());
  });

  it("has a mark that the other side of the shared memory sees until the claim ends", () => {
    const ours = new SharedStanding();
    const theirs = new SharedStanding(ours.buffer);
    ours.mark(place, 2 ** 40 + 1);
    ours.sureUntilMs = 1_234_567.891;
    expect([theirs.started(), theirs.sureUntilMs]).toEqual([new Set([2 ** 40 + 1]), 1_234_567.891]);
    ours.unmark(place);
    expect(theirs.started()).toEqual(new Set());
  });
});
