import fc from "fast-check";
import { expect, test } from "vitest";
import { LineReader } from "./output.ts";

function readAll(chunks: (string | Uint8Array)[], { left = 1e9, lineBytes = 100 } = {}) {
  const lines: string[] = [];
  const budget = { left, cut: 0, exhausted: () => lines.push("<exhausted>") };
  const reader = new LineReader(budget, (line) => lines.push(line), lineBytes);
  for (const chunk of chunks) reader.push(typeof chunk === "string" ? Buffer.from(chunk) : chunk);
  reader.end();
  return { lines, cut: budget.cut, last: reader.last };
}

test("output is split into lines, whatever the line ends and the chunk boundaries", () => {
  expect(readAll(["a\nb", "c\r\n\n", "d"]).lines).toEqual(["a", "bc", "", "d"]);
  expect(readAll([]).lines).toEqual([]);
});

test("characters split across chunks stay whole; invalid bytes and NUL become U+FFFD", () => {
  const text = Buffer.from("zürich 🔔\n");
  for (let at = 0; at <= text.length; at++) {
    expect(readAll([text.subarray(0, at), text.subarray(at)]).lines).toEqual(["zürich 🔔"]);
  }
  expect(readAll([Uint8Array.of(0xff, 0x41, 0, 0xc3, 10, 0xc3)]).lines).toEqual(["\uFFFDA\uFFFD\uFFFD", "\uFFFD"]);
  expect(readAll([Buffer.from("\uFEFFa\n")]).lines).toEqual(["\uFEFFa"]);
});

test("a long line is cut with a mark, and the next line is whole", () => {
  expect(readAll(["x".repeat(150), "y".repeat(20), "\nnext\n"])).toMatchObject({
    lines: [`${"x".repeat(100)} [line cut: 70 more bytes]`, "next"],
    cut: 70,
  });
});

test("an exhausted budget is noted once, further output is only counted, and the last lines are kept", () => {
  const many = Array.from({ length: 50 }, (_, n) => `line ${n}\n`);
  const { lines, cut, last } = readAll(many, { left: 20 });
  expect(lines).toEqual(["line 0", "line 1", "<exhausted>"]);
  expect(cut).toBe(many.slice(2).join("").length);
  expect(last).toEqual(many.slice(-10).map((line) => line.trimEnd()));
});

test("a gigabyte without a line end is read in bounded memory", () => {
  const chunk = new Uint8Array(1024 * 1024).fill(120);
  const before = process.memoryUsage().rss;
  const { lines, cut } = readAll(Array.from({ length: 1024 }, () => chunk));
  expect(lines).toEqual([`${"x".repeat(100)} [line cut: ${1024 ** 3 - 100} more bytes]`]);
  expect(cut).toBe(1024 ** 3 - 100);
  expect(process.memoryUsage().rss - before).toBeLessThan(100 * 1024 * 1024);
});

test("chunk boundaries do not change the result", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), fc.array(fc.nat(300), { maxLength: 8 }), (bytes, cuts) => {
      const ends = [...cuts, 0, bytes.length].filter((at) => at <= bytes.length).sort((a, b) => a - b);
      const chunks = ends.slice(1).map((end, at) => bytes.subarray(ends[at], end));
      expect(readAll(chunks, { lineBytes: 40, left: 120 })).toEqual(readAll([bytes], { lineBytes: 40, left: 120 }));
    }),
  );
});
