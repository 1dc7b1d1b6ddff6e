import { expect, test } from "vitest";
import { VirtualClock } from "../../test/support/virtual-clock.ts";
import { beatLine } from "./line-beat.ts";

function line() {
  const clock = new VirtualClock(0);
  const heard: string[] = [];
  const answers: ((may: boolean) => void)[] = [];
  const end = beatLine(
    { write: (text: string) => heard.push(text) > 0 },
    clock,
    () => new Promise((resolve) => answers.push(resolve)),
    () => heard.push("stopped"),
  );
  const answer = async (may: boolean) => {
    answers.shift()?.(may);
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { clock, heard, answers, answer, end };
}

test("a stream's line beats every 15 s for as long as its reader may listen", async () => {
  const { clock, heard, answer, answers } = line();
  for (const may of [true, true, false]) {
    clock.advance(15_000);
    await answer(may);
  }
  expect(heard).toEqual([": beat\n\n", ": beat\n\n", "stopped"]);
  clock.advance(60_000);
  expect(answers).toHaveLength(0);
});

test("a stream that ends while that is asked is written to no more, and not asked for again", async () => {
  for (const may of [true, false]) {
    const { clock, heard, answers, answer, end } = line();
    clock.advance(15_000);
    end();
    await answer(may);
    clock.advance(60_000);
    expect([heard, answers]).toEqual([[], []]);
  }
});
