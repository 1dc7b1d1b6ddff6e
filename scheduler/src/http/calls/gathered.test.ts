import { describe, expect, test } from "vitest";
import { Gathered } from "./gathered.ts";

/** A simulated store that answers only when the test calls a function. */
function slowStore() {
  const sent: string[][] = [];
  const answers: (() => void)[] = [];
  const gathered = new Gathered<string, string>(async (keys) => {
    sent.push(keys);
    await new Promise<void>((resolve) => answers.push(resolve));
    if (keys.includes("bad")) throw new Error("away");
    return keys.map((key) => key.toUpperCase());
  }, 3);
  return { sent, answers, gathered };
}
const turn = () => new Promise((resolve) => setImmediate(resolve));

describe("batched queries", () => {
  test("are sent at once while few are in flight, then in bounded batches, and each gets its own answer", async () => {
    const { sent, answers, gathered } = slowStore();
    const first = gathered.ask("a");
    await turn();
    const second = gathered.ask("b");
    await turn();
    expect(sent).toEqual([["a"], ["b"]]);
    const later = ["c", "d", "e", "f"].map((key) => gathered.ask(key));
    await turn();
    expect(sent).toHaveLength(2);
    answers[0]?.();
    expect(await first).toBe("A");
    await turn();
    expect(sent[2]).toEqual(["c", "d", "e"]);
    answers[1]?.();
    await turn();
    expect(sent[3]).toEqual(["f"]);
    for (const answer of answers) answer();
    expect(await second).toBe("B");
    expect(await Promise.all(later)).toEqual(["C", "D", "E", "F"]);
  });

  test("fail together if their statement fails, and the next batch is sent all the same", async () => {
    const { answers, gathered } = slowStore();
    const [one, two] = [gathered.ask("bad"), gathered.ask("a")].map((asked) => asked.catch((error: Error) => error));
    await turn();
    answers[0]?.();
    expect([await one, await two]).toEqual([new Error("away"), new Error("away")]);
    const after = gathered.ask("z");
    await turn();
    answers[1]?.();
    expect(await after).toBe("Z");
  });
});
