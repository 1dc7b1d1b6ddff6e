import { expect, test } from "vitest";
import { systemClock } from "../../base/clock.ts";
import { silentLog } from "../../base/log.ts";
import type { LogLine } from "../../run/run-record.ts";
import { LogBuffer } from "./log-buffer.ts";

const line = (message: string): LogLine => ({ runId: 1, attempt: 1, atMs: 0, level: "info", message, fields: null });

/** Returns a buffer whose timers fire, and whose writes to the store are answered, only when the test says so. */
function stage() {
  const timers: (() => void)[] = [];
  const after = (_ms: number, fire: () => void) => {
    timers.push(fire);
    return () => undefined;
  };
  const clock = { ...systemClock, after };
  const writes: { messages: string[]; answer: (error?: Error) => void }[] = [];
  const write = (lines: LogLine[]) =>
    new Promise<void>((resolve, reject) => {
      const messages = lines.map(({ message }) => message);
      writes.push({ messages, answer: (error) => (error ? reject(error) : resolve()) });
    });
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const fire = async () => {
    for (const timer of timers.splice(0)) timer();
    await turn();
  };
  return { buffer: new LogBuffer(write, clock, silentLog), writes, fire, turn };
}

test("lines added while earlier lines are in flight are sent after them", async () => {
  const { buffer, writes, fire, turn } = stage();
  buffer.add(line("a"));
  await fire();
  buffer.add(line("b"));
  await fire();
  writes[0]?.answer();
  await turn();
  writes[1]?.answer();
  await buffer.flush();
  expect(writes.map(({ messages }) => messages)).toEqual([["a"], ["b"]]);
});

test("lines that could not be written are written again, with those added since", async () => {
  const { buffer, writes, fire, turn } = stage();
  buffer.add(line("a"));
  await fire();
  buffer.add(line("b"));
  writes[0]?.answer(new Error("away"));
  await turn();
  await fire();
  writes[1]?.answer();
  await turn();
  await buffer.flush();
  expect(writes.map(({ messages }) => messages)).toEqual([["a"], ["a", "b"]]);
});

test("lines that do not fit are counted, and reported once", async () => {
  const { buffer, writes, fire, turn } = stage();
  for (let i = 0; i < 10_005; i++) buffer.add(line(`${i}`));
  await fire();
  for (let at = 0; at < 10; at++) {
    writes[at]?.answer();
    await turn();
  }
  await buffer.flush();
  const told = writes.flatMap(({ messages }) => messages);
  expect(told).toHaveLength(10_001);
  expect(told.filter((message) => message === "5 log lines were dropped: too many at once")).toHaveLength(1);
});

test("large lines are also bounded by size, in the buffer and per statement", async () => {
  const { buffer, writes, fire, turn } = stage();
  const fields = { text: "x".repeat(250_000) };
  for (let i = 0; i < 200; i++) buffer.add({ ...line(`${i}`), fields });
  await fire();
  for (let at = 0; at < 30; at++) {
    writes[at]?.answer();
    await turn();
  }
  await buffer.flush();
  const told = writes.flatMap(({ messages }) => messages);
  expect(told.filter((message) => message.endsWith("too many at once"))).toEqual([
    "66 log lines were dropped: too many at once",
  ]);
  expect(Math.max(...writes.map(({ messages }) => messages.length))).toBeLessThanOrEqual(17);
  buffer.add(line("after"));
  await fire();
  writes.at(-1)?.answer();
  await turn();
  expect(writes.at(-1)?.messages, "there is room again").toEqual(["after"]);
});
