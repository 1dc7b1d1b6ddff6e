import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RedisMembers } from "./members.ts";

const make = () => {
  const log: string[] = [];
  return { log, members: new RedisMembers((line) => void log.push(line)) };
};

describe("members told by messages", () => {
  it("reach what a reading at the end would show, however they were doubled, mixed and mislaid", () => {
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

  it("wait for the first reading, and for one after a new beginning", () => {
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

  it("tell of who is gone, not of who comes; tell of what cannot be read, and go on", () => {
    const { members, log } = make();
    members.reset(0, [1]);
    expect([members.message("1\n+7"), members.message("2\n+nonsense\n-1")]).toEqual([false, true]);
    expect([[...members.shown], log.length]).toEqual([[7], 1]);
  });
});
