import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { standardErrorLog } from "../../base/log.ts";
import { styleOf } from "../screen/style.ts";
import { jsonLines, lineLog } from "./node-log.ts";

/** Generates text as it may come from outside: names of tasks, errors of handlers, answers of servers. */
const text = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string({ unit: fc.constantFrom(...'ab{}"\n\r\u001b\u0085\u009b\u2028\u2029'), minLength: 1 }),
);
const fields = fc.dictionary(text, fc.oneof(text, fc.record({ of: text })), { maxKeys: 3 });
const given = fc.record({ message: text, fields, error: text, hint: text });

/** Matches characters that would begin another line or control a terminal. */
const foreign = /[\p{Cc}\u2028\u2029]/u;

describe("each log entry is one line, whatever it contains", () => {
  it("as JSON", () => {
    fc.assert(
      fc.property(given, ({ message, fields, error, hint }) => {
        const written: string[] = [];
        const output = { write: (line: string) => written.push(line) };
        jsonLines("info", output).warn({ ...fields, error, hint }, message);
        expect(written).toHaveLength(1);
        const [line = ""] = written;
        expect(line.indexOf("\n")).toBe(line.length - 1);
        expect(line).not.toMatch(/\r/);
        expect(JSON.parse(line)).toMatchObject({ level: "warn", message, error, hint });
      }),
    );
  });

  it("as text, with a second line for a hint", () => {
    fc.assert(
      fc.property(given, ({ message, fields, error, hint }) => {
        const written: string[] = [];
        const log = lineLog("info", styleOf(false), (line) => void written.push(line));
        log.warn({ ...fields, error, hint }, message);
        expect(written.length).toBeLessThanOrEqual(hint === "" ? 1 : 2);
        for (const line of written) expect(line).not.toMatch(foreign);
      }),
    );
  });

  it("in a library without a log", () => {
    const write = vi.spyOn(process.stderr, "write").mockReturnValue(true);
    try {
      fc.assert(
        fc.property(given, ({ message, fields, error }) => {
          write.mockClear();
          standardErrorLog.warn({ ...fields, error }, message);
          const said = write.mock.calls.map(([line]) => String(line));
          expect(said).toHaveLength(1);
          expect(said[0]?.slice(0, -1)).not.toMatch(foreign);
          expect(said[0]?.at(-1)).toBe("\n");
        }),
      );
    } finally {
      write.mockRestore();
    }
  });
});
