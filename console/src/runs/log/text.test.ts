import { expect, test } from "vitest";
import { lineText } from "./text.ts";

test("a line of the log file has its time, level, attempt and fields, and no colour codes", () => {
  const line = {
    id: "1(0,1)",
    at: "2026-11-28T12:00:00.250Z",
    attempt: 2,
    level: "warn" as const,
    message: "\u001b[33mslow\u001b[0m part 7",
    fields: { tookMs: 1_200, host: "a b" },
  };
  expect(lineText(line)).toBe("2026-11-28T12:00:00.250Z WARN  #2 slow part 7 tookMs=1200 host=a b\n");
  expect(lineText({ ...line, level: "error", fields: {} })).toBe("2026-11-28T12:00:00.250Z ERROR #2 slow part 7\n");
});
