import { expect, test } from "vitest";
import { VirtualClock } from "../../../test/support/virtual-clock.ts";
import { beatLine } from "./line-beat.ts";

function line() {
  const clock = new VirtualClock(0);
  const heard: string[] = [];
  const answers: ((may: boolean | Error) => void)[] = [];
  const end = beatLine(
    { write: (text: string) => heard.push(text) > 0 },
    clock,
    () =>
      new Promise((resolve, reject) => answers.push((may) => (typeof may === "boolean" ? resolve(may) : reject(may)))),
    () => heard.push("stopped"),
  );
  const answer = async (may: boolean | Error) => {
    answers.shift()?.(may);
    await new Promise((resolve) => setImmediate(resolve));
  };
  /** Advances the clock through `count` checks, each of which gets the result `may`. */
  const looks = async (count: number, may: boolean | Error) => {
    for (let n = 0; n < count; n++) {
      clock.advance(500);
      await answer(may);
    }
  };
  return { clock, heard, answers, answer, looks, end };
}

test("a stream sends a heartbeat every 15 s while its reader has access, and ends within 0.5 s otherwise", async () => {
  const { clock, heard, looks, answers } = line();
  await looks(29, true);
  expect(heard).toEqual([]);
  await looks(31, true);
  expect(heard).toEqual([": beat\n\n", ": beat\n\n"]);
  await looks(1, false);
  expect(heard.at(-1)).toBe("stopped");
  clock.advance(60_000);
  expect(answers).toHaveLength(0);
});

test("a stream survives failed access checks until its next heartbeat", async () => {
  const { heard, looks } = line();
  const away = new Error("the store is away");
  await looks(20, away);
  await looks(10, true);
  await looks(29, away);
  expect(heard).toEqual([": beat\n\n"]);
  await looks(1, away);
  expect(heard).toEqual([": beat\n\n", "stopped"]);
});

test("a stream that ends during an access check is neither written to nor checked again", async () => {
  for (const may of [true, false]) {
    const { clock, heard, answers, answer, end } = line();
    clock.advance(500);
    end();
    await answer(may);
    clock.advance(60_000);
    expect([heard, answers]).toEqual([[], []]);
  }
});
