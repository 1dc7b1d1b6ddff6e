import { expect, it } from "vitest";
import { VirtualClock } from "../../../../test/support/virtual-clock.ts";
import { silentLog } from "../../../base/log.ts";
import type { Database } from "../database.ts";
import { Announcer } from "./announcer.ts";

/** Creates an announcer whose statements end when the test calls `answer`. */
function announcing() {
  const clock = new VirtualClock(0);
  const asked: { due: unknown; answer: () => void }[] = [];
  const ask = (_name: string, _sql: string, [, due]: unknown[]) =>
    new Promise<void>((answer) => asked.push({ due, answer }));
  const database = { schema: "s", clock, log: silentLog, ask } as unknown as Database;
  return { clock, asked, announcer: new Announcer(database) };
}
const settled = () => new Promise((resolve) => setImmediate(resolve));

it("after 3 ms without an enqueue, an enqueue due soon carries the signal in its own statement", async () => {
  const { clock, asked, announcer } = announcing();
  expect(announcer.carriesOwn(60_001, 0)).toBe(false);
  clock.advance(3);
  expect(announcer.carriesOwn(60_000, 0)).toBe(true);
  for (let n = 0; n < 3; n++) {
    clock.advance(2);
    expect(announcer.carriesOwn(0, 0), "another was just before it").toBe(false);
  }
  announcer.committed({ ready: 0, direct: Infinity }, 0);
  expect(asked, "the one in the statement is older than 3 ms").toHaveLength(1);
  clock.advance(10);
  expect(announcer.carriesOwn(0, 0), "a signal is on its way").toBe(false);
  asked[0]?.answer();
  await settled();
  clock.advance(3);
  expect(announcer.carriesOwn(0, 0)).toBe(true);
});

it("close waits until everything is sent, including runs queued behind a slow signal", async () => {
  const { clock, asked, announcer } = announcing();
  announcer.committed({ ready: 3, direct: Infinity }, 0);
  announcer.committed({ ready: 1, direct: Infinity }, 0);
  let closed = false;
  const closing = announcer.close().then(() => {
    closed = true;
  });
  clock.advance(5);
  asked[0]?.answer();
  await settled();
  expect(asked.map(({ due }) => due)).toEqual([[3], [1]]);
  expect(closed, "the second is on its way").toBe(false);
  asked[1]?.answer();
  await closing;
});
