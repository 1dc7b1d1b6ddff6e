import { describe, expect, it } from "vitest";
import { limits } from "../../base/limits.ts";
import { bounded, fittingPage } from "./bounded.ts";

const sizeOf = (value: unknown) => JSON.stringify(value).length;

describe("a bounded answer", () => {
  it("is unchanged if it is short", () => {
    const answer = { items: [{ run: 1, payload: { a: [1, "two"] }, error: null }], next: null };
    expect(bounded(answer)).toEqual({ answer, cut: [], fits: true });
  });

  it("has long texts, user values and lists truncated, and lists the path of each", () => {
    const answer = {
      run: 7,
      error: { message: "m".repeat(5_000), code: "X" },
      payload: { rows: Array.from({ length: 5_000 }, (_, n) => n) },
      attempts: Array.from({ length: 600 }, (_, n) => ({ attempt: n })),
    };
    const { answer: short, cut } = bounded(answer);
    expect(cut).toEqual(["error.message", "payload", "attempts (the first 500 of 600)"]);
    expect(short).toMatchObject({ run: 7, error: { code: "X" }, payload: { cut: true, characters: 23_900 } });
    expect((short.error as { message: string }).message).toMatch(/^m{2000}… \(cut: 2000 of 5000 characters\)$/);
    expect(short.attempts).toHaveLength(500);
  });

  it("keeps every item of a page and the next cursor, however long the items' texts are", () => {
    const items = Array.from({ length: limits.mcpPageItems }, (_, n) => ({ id: n, message: "x".repeat(16_000) }));
    const { answer, cut } = bounded({ items, next: "n".repeat(7_500), tail: "t".repeat(8_000) });
    expect(answer.items).toHaveLength(items.length);
    expect([answer.next, answer.tail]).toEqual(["n".repeat(7_500), "t".repeat(8_000)]);
    expect(cut).toHaveLength(items.length);
    expect(sizeOf(answer)).toBeLessThanOrEqual(limits.mcpAnswerCharacters);
  });

  it("has lists of lists cut further, down to one item each, until it is short", () => {
    const names = (count: number) => Array.from({ length: count }, (_, n) => `${n}${"n".repeat(190)}`);
    const { answer, fits } = bounded({ groups: Array.from({ length: 600 }, (_, n) => ({ n, tasks: names(100) })) });
    expect(fits).toBe(true);
    expect(sizeOf(answer)).toBeLessThanOrEqual(limits.mcpAnswerCharacters);
    expect((answer.groups as { tasks: string[] }[])[0]?.tasks[0]).toBe(names(1)[0]);
  });

  it("of a page whose items are too long is read again with fewer, so that `next` follows the last of them", async () => {
    const texts = Array.from({ length: 20 }, () => "x".repeat(240));
    const item = (n: number) => ({ n, ...texts });
    const asked: unknown[] = [];
    const read = async (given: Record<string, unknown>) => {
      asked.push(given);
      const { cursor, limit } = given as { cursor: number; limit: number };
      const items = Array.from({ length: Math.min(limit, 40) }, (_, n) => item(cursor + n));
      return { items, next: cursor + items.length };
    };
    const page = await fittingPage(read, { cursor: 7, limit: 50, task: "t" });
    expect(asked).toEqual([50, 20, 10].map((limit) => ({ cursor: 7, limit, task: "t" })));
    expect([page.items.map(({ n }) => n), page.next]).toEqual([Array.from({ length: 10 }, (_, n) => 7 + n), 17]);
    const { answer, fits } = bounded(page);
    expect(fits).toBe(true);
    expect(answer).toEqual(page);
    const one = { items: [Object.fromEntries(Array.from({ length: 400 }, (_, n) => [n, texts[0]]))], next: null };
    expect(await fittingPage(async () => one, { limit: 50 }), "a single item stays").toBe(one);
  });

  it("truncates parts of a definition as values", () => {
    const { answer, cut } = bounded({ definition: { name: "a", payloadSchema: { enum: ["e".repeat(20_000)] } } });
    expect(cut).toEqual(["definition.payloadSchema"]);
    expect(answer.definition).toMatchObject({ name: "a", payloadSchema: { cut: true } });
  });
});
