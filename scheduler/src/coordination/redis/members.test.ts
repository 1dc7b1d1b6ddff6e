import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RedisMembers } from "./members.ts";

const make = () => {
  const log: string[] = [];
  return { log, members: new RedisMembers((line) => void log.push(line)) };
};

describe("members received by messages", () => {
  it("equal the members that a reading shows, even if messages are repeated, reordered or lost", () => {
    const change = fc.record({ session: fc.integer({ min: 1, max: 5 }), joins: fc.boolean() });
    fc.assert(
      fc.property(fc.array(change, { maxLength: 30 }), fc.infiniteStream(fc.nat()), (changes, chance) => {
        const truth = new Set<number>();
        const messages = changes.map(({ session, joins }, index) => {
          if (joins) truth.add(session);
          else truth.delete(session);
          return `${index + 1}\n${joins ? "+" : "-"}${session}`;
        });
        const draw = () => chance.next().value as number;
        const sent = messages.flatMap((message) => Array.from({ length: draw() % 3 }, () => message));
        sent.sort(() => (draw() % 2) - 0.5);
        const { members, log } = make();
        members.reset(0, []);
        for (const message of sent) members.message(message);
        expect(members.version).toBeLessThanOrEqual(messages.length);
        if (members.version < messages.length) members.reset(messages.length, [...truth]);
        expect([...members.shown].sort()).toEqual([...truth].sort());
        expect(log).toEqual([]);
      }),
    );
  });

  it("ignore messages before the first reading, and after a reset until the next reading", () => {
    const { members } = make();
    expect(members.message("5\n+1")).toBe(false);
    members.reset(4, [2]);
    expect([...members.shown]).toEqual([2, 1]);
    members.forget();
    expect(members.message("6\n-1")).toBe(false);
    expect([...members.shown]).toEqual([2, 1]);
    members.reset(1, []);
    expect([members.shown.size, members.version]).toEqual([0, 1]);
  });

  it("report departures, not arrivals; an unreadable message is logged and skipped", () => {
    const { members, log } = make();
    members.reset(0, [1]);
    expect([members.message("1\n+7"), members.message("2\n+nonsense\n-1")]).toEqual([false, true]);
    expect([[...members.shown], log.length]).toEqual([[7], 1]);
  });
});
