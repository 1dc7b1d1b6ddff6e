import { describe, expect, it } from "vitest";
import { VirtualClock } from "../../../test/support/virtual-clock.ts";
import { Turn } from "./turn.ts";

function stage() {
  const clock = new VirtualClock(0);
  let turns = 0;
  const turn = new Turn(() => turns++);
  return { clock, turn, turns: () => turns };
}

describe("a turn of starts", () => {
  it("is over after a while, and the runs that were left start in the next one", () => {
    const { clock, turn, turns } = stage();
    const beganMono = clock.monotonic();
    expect(turn.lasts(beganMono)).toBe(true);
    turn.ended(clock, true);
    expect(turn.lasts(beganMono + 10), "a microtask goes on with the same turn").toBe(true);
    expect(turn.lasts(beganMono + 1_000)).toBe(false);
    turn.ended(clock, true);
    clock.advance(1);
    expect(turns()).toBe(1);
    expect(turn.lasts(beganMono + 1_000), "the next turn has a time of its own").toBe(true);
  });

  it("is not followed by another while all places stay taken, or once no run is left", () => {
    const { clock, turn, turns } = stage();
    turn.lasts(clock.monotonic());
    turn.ended(clock, true);
    clock.advance(1);
    turn.ended(clock, true);
    clock.advance(1_000);
    expect(turns(), "no run has started since").toBe(1);
    turn.lasts(clock.monotonic());
    turn.ended(clock, false);
    clock.advance(1_000);
    expect(turns()).toBe(1);
    expect(turn.lasts(clock.monotonic())).toBe(true);
  });
});
