import { describe, expect, it } from "vitest";
import { limits } from "../../base/limits.ts";
import { bounded } from "./bounded.ts";

const sizeOf = (value: unknown) => JSON.stringify(value).length;

describe("a bounded answer", () => {
  it("is unchanged if it is short", () => {
    const answer = { items: [{ run: 1, payload: { a: [1, "two"] }, error: null }], next: null };
    expect(bounded(answer)).toEqual({ answer, cut: [] });
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

  it("truncates parts of a definition as values", () => {
    const { answer, cut } = bounded({ definition: { name: "a", payloadSchema: { enum: ["e".repeat(20_000)] } } });
    expect(cut).toEqual(["definition.payloadSchema"]);
    expect(answer.definition).toMatchObject({ name: "a", payloadSchema: { cut: true } });
  });
});
