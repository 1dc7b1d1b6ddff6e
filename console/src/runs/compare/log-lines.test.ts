import { expect, test } from "vitest";
import type { LogLine } from "../log/levels.ts";
import { alone } from "./log-lines.ts";

const lines = (...texts: string[]) =>
  texts.map((text, at) => {
    const [level, ...words] = text.split(" ");
    return { id: `${at}`, at: "", attempt: 1, level, message: words.join(" "), fields: null } as LogLine;
  });

test("a line is alone if the other log has none with its level and words, whatever its numbers and colours", () => {
  const [a, b] = [
    lines("info loaded 12 rows of run-8a", "info \u001b[32mdone\u001b[0m", "warn slow", "info part 1", "info part 2"),
    lines("info loaded 7 rows of run-99", "info done", "error slow", "info part 1"),
  ];
  expect(alone(a, b)).toEqual([false, false, true, false, true]);
  expect(alone(b, a)).toEqual([false, false, true, false]);
  expect(alone(a, [])).toEqual(a.map(() => true));
});
