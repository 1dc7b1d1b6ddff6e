import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Shown } from "../witness.ts";
import { RedisMembers } from "./redis-members.ts";

const shown = (sessionId: number, version = "1"): Shown => ({
  sessionId,
  node: `n${sessionId}`,
  role: "node",
  host: "h",
  pid: 1,
  version,
  groups: [],
});
const text = (of: Shown) => JSON.stringify(of);
const make = () => {
  const log: string[] = [];
  return { log, members: new RedisMembers((line) => void log.push(line)) };
};

describe("members told by messages", () => {
  it("reach what a reading at the end would show, however they were doubled, mixed and mislaid", () => {
    const change = fc.record({ session: fc.integer({ min: 1, max: 5 }), joins: fc.boolean(), version: fc.string() });
    fc.assert(
      fc.property(fc.array(change, { maxLength: 30 }), fc.infiniteStream(fc.nat()), (changes, chance) => {
        const truth = new Map<number, Shown>();
        const messages = changes.map(({ session, joins, version }, index) => {
          if (joins) truth.set(session, shown(session, version));
          else truth.delete(session);
          return `${index + 1}\n${joins ? `+${text(shown(session, version))}` : `-${session}`}`;
        });
        const draw = () => chance.next().value as number;
        const sent = messages.flatMap((message) => Array.from({ length: draw() % 3 }, () => message));
        sent.sort(() => (draw() % 2) - 0.5);
        const { members, log } = make();
        members.reset(0, []);
        for (const message of sent) members.message(message);
        expect(members.version).toBeLessThanOrEqual(messages.length);
        if (members.version < messages.length) members.reset(messages.length, [...truth.values()].map(text));
        expect([...members.shown.entries()].sort()).toEqual([...truth.entries()].sort());
        expect(log).toEqual([]);
      }),
    );
  });

  it("wait for the first reading, and for one after a new beginning", () => {
    const { members } = make();
    expect(members.message(`5\n+${text(shown(1))}`)).toEqual({ first: [], changed: false });
    members.reset(4, [text(shown(2))]);
    expect([...members.shown.keys()]).toEqual([2, 1]);
    members.forget();
    expect(members.message("6\n-1\n!abc")).toEqual({ first: ["abc"], changed: false });
    expect([...members.shown.keys()]).toEqual([2, 1]);
    members.reset(1, []);
    expect([members.shown.size, members.version]).toEqual([0, 1]);
  });

  it("tell of what cannot be read, and go on", () => {
    const { members, log } = make();
    members.reset(0, ["{", text(shown(1)), '{"sessionId":"1"}']);
    expect(members.message("1\n+nonsense\n-1").changed).toBe(true);
    expect([members.shown.size, log.length]).toEqual([0, 3]);
  });
});
