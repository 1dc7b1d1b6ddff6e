import { describe, expect, it } from "vitest";
import { type ClockVote, isAdoptable, judgeStep, shiftAfter, wallAgrees } from "./clock-votes.ts";

const hourMs = 3_600_000;
const [me, shiftMs] = [1, 0];

/** Another node's vote. `before`: its heartbeat counter when the step was first seen; `since`: by how much the counter has grown since. */
type Other = Partial<Omit<ClockVote, "sessionId" | "beat">> & { since?: number; before?: number | null };

/**
 * @param wallOffMs the store's clock minus this machine's wall clock; by default `stepMs`, as if the wall clock had not stepped
 */
function judge(others: Other[], stepMs = hourMs, wallOffMs = stepMs) {
  const beats = new Map<number, number>([[me, 50]]);
  const votes: ClockVote[] = [{ sessionId: me, beat: 50, offMs: stepMs, wallOffMs }];
  others.forEach(({ offMs = 0, wallOffMs: wall = stepMs, since = 2, before = 20 }, n) => {
    if (before !== null) beats.set(n + 2, before);
    votes.push({ sessionId: n + 2, beat: (before ?? 0) + since, offMs, wallOffMs: wall });
  });
  return judgeStep({ sessionId: me, stepMs, wallOffMs, beats }, { votes, shiftMs, number: 0, sinceMs: null });
}

const saw = { offMs: hourMs, since: 1 };
const agrees = { offMs: 4 };
const unheard = { since: 0 };

describe("a clock step that a process has observed", () => {
  it.each<[string, Other[], ReturnType<typeof judge>]>([
    ["alone", [], "stepped"],
    ["the other saw it too", [saw], "stepped"],
    ["the other saw nothing", [agrees], "follow"],
    ["the other was not heard since", [unheard], undefined],
    ["the other's first beat since may have read the clock before the step", [{ ...agrees, since: 1 }], undefined],
    ["two of three saw it", [saw, agrees], "stepped"],
    ["two of three saw it, and the third was not heard", [saw, unheard], "stepped"],
    ["one of three saw it", [agrees, agrees], "follow"],
    ["one of four saw it, and two others are enough", [agrees, agrees, unheard], "follow"],
    ["two of four", [saw, agrees, agrees], "follow"],
    ["the other began after the step", [{ ...agrees, before: null }], "stepped"],
    ["the other may have begun after the step", [{ ...agrees, before: 2 }], "stepped"],
    ["the other began a moment ago and saw it", [{ ...saw, before: 1 }], "stepped"],
    ["the other is of a version that reports nothing", [{ offMs: null as never, since: 3 }], "stepped"],
    ["the other's beat took 800 ms", [{ offMs: hourMs + 800, since: 1 }], "stepped"],
    ["the other is off by something else", [{ offMs: -hourMs }], undefined],
  ])("%s", (_, others, verdict) => {
    const reported = others.map((one) => (one.offMs === (null as never) ? { ...one, offMs: null } : one));
    expect(judge(reported)).toBe(verdict);
    expect(judge(reported.map(flipped), -hourMs)).toBe(verdict);
  });

  const flipped = (one: Other): Other => ({
    ...one,
    ...(typeof one.offMs === "number" && Math.abs(one.offMs) >= hourMs && { offMs: -one.offMs }),
  });

  it("is adopted if most wall clocks of the observers agree with the store's new time", () => {
    expect(judge([], hourMs, 20)).toBe("adopt");
    expect(judge([{ ...saw, wallOffMs: 10 }], hourMs, 20)).toBe("adopt");
    expect(judge([{ ...saw, wallOffMs: hourMs }], hourMs, 20)).toBe("stepped");
    expect(
      judge(
        [
          { ...saw, wallOffMs: 10 },
          { ...saw, wallOffMs: 10 },
        ],
        hourMs,
        hourMs,
      ),
    ).toBe("adopt");
    expect(judge([{ ...saw, wallOffMs: null }], hourMs, 20)).toBe("stepped");
    expect(judge([agrees], hourMs, 20)).toBe("follow");
  });
});

it("a wall clock agrees with the clock that is much closer to it", () => {
  expect(wallAgrees(0, -hourMs)).toBe(true);
  expect(wallAgrees(hourMs, -hourMs)).toBe(false);
  expect(wallAgrees(10_000, -hourMs), "not exactly set").toBe(true);
  expect(wallAgrees(-hourMs + 900_000, -900_000), "off by an hour before, and now by less").toBe(false);
  expect(wallAgrees(400, -600)).toBe(false);
  expect(wallAgrees(100, -600)).toBe(true);
});

it("a majority of wall clocks ends an incident; earlier reports do not count", () => {
  const vote = (offMs: number | null, wallOffMs: number | null): ClockVote => ({
    sessionId: 1,
    beat: 9,
    offMs,
    wallOffMs,
  });
  const adoptable = (votes: ClockVote[]) => isAdoptable({ votes, shiftMs: -hourMs, number: 1, sinceMs: 0 });
  const [right, wrong, old] = [vote(3, 5), vote(3, hourMs), vote(-hourMs, 0)];
  expect(adoptable([right])).toBe(true);
  expect(adoptable([right, wrong])).toBe(false);
  expect(adoptable([right, right, wrong])).toBe(true);
  expect(adoptable([right, old])).toBe(false);
  expect(adoptable([right, vote(null, null)])).toBe(false);
  expect(adoptable([])).toBe(false);
});

it("the shift compensates the step, and is zero once the store's clock is within 500 ms again", () => {
  expect(shiftAfter(0, hourMs)).toBe(-hourMs);
  expect(shiftAfter(-hourMs, -hourMs + 300)).toBe(0);
  expect(shiftAfter(-hourMs, -hourMs + 501)).toBe(-501);
  expect(shiftAfter(-hourMs, hourMs)).toBe(-2 * hourMs);
});
