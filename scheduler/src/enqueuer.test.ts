import { describe, expect, it } from "vitest";
import { Enqueuer } from "./enqueuer.ts";
import type { Enqueued, EnqueueWrite } from "./store.ts";

const write = (taskId: number): EnqueueWrite => ({
  taskId,
  payload: null,
  dueMs: 0,
  key: null,
  priority: null,
  source: "enqueue",
});

/** A store whose statements end when the test says so. */
function line() {
  const statements: { writes: EnqueueWrite[]; end: () => void; fail: (error: Error) => void }[] = [];
  const enqueuer = new Enqueuer(
    (writes) =>
      new Promise<Enqueued[]>((resolve, reject) => {
        statements.push({
          writes,
          end: () => resolve(writes.map(({ taskId }) => ({ runId: taskId * 10, created: true }))),
          fail: reject,
        });
      }),
  );
  return { enqueuer, statements };
}
const turn = () => new Promise((resolve) => setImmediate(resolve));

describe("enqueueing together", () => {
  it("what is asked for in one turn, and while a statement is under way, travels together; each gets its own answer", async () => {
    const { enqueuer, statements } = line();
    const first = [1, 2, 3].map((taskId) => enqueuer.add(write(taskId)));
    await turn();
    expect(statements.map(({ writes }) => writes.map(({ taskId }) => taskId))).toEqual([[1, 2, 3]]);
    const second = [4, 5].map((taskId) => enqueuer.add(write(taskId)));
    await turn();
    expect(statements, "one statement at a time").toHaveLength(1);
    statements[0]?.end();
    expect((await Promise.all(first)).map(({ runId }) => runId)).toEqual([10, 20, 30]);
    await turn();
    statements[1]?.end();
    expect((await Promise.all(second)).map(({ runId }) => runId)).toEqual([40, 50]);
    const alone = enqueuer.add(write(6));
    await turn();
    statements[2]?.end();
    expect((await alone).runId).toBe(60);
  });

  it("many go in two statements side by side, in order; those with keys in one after the other", async () => {
    for (const key of [null, "k"]) {
      const { enqueuer, statements } = line();
      const all = Promise.all(Array.from({ length: 600 }, (_, i) => enqueuer.add({ ...write(i), key })));
      await turn();
      const numbers = statements.map(({ writes }) => writes.map(({ taskId }) => taskId));
      const [first, second] = [
        Array.from({ length: 300 }, (_, i) => i),
        Array.from({ length: 300 }, (_, i) => 300 + i),
      ];
      expect(numbers).toEqual(key === null ? [first, second] : [[...first, ...second]]);
      for (const { end } of statements) end();
      expect((await all).map(({ runId }) => runId)).toEqual([...first, ...second].map((taskId) => taskId * 10));
    }
  });

  it("bounds a statement", async () => {
    const { enqueuer, statements } = line();
    const all = Promise.all(Array.from({ length: 4_500 }, (_, i) => enqueuer.add(write(i))));
    for (let i = 0; i < 3; i++) {
      await turn();
      statements[i]?.end();
    }
    expect(await all).toHaveLength(4_500);
    expect(statements.map(({ writes }) => writes.length)).toEqual([2_000, 2_000, 500]);
  });

  it("when one is at fault, each is told its own answer", async () => {
    const enqueuer = new Enqueuer(async (writes) => {
      if (writes.some(({ taskId }) => taskId === 2)) throw new Error("2 is gone");
      return writes.map(({ taskId }) => ({ runId: taskId, created: true }));
    });
    const answers = await Promise.allSettled([1, 2, 3].map((taskId) => enqueuer.add(write(taskId))));
    expect(answers).toMatchObject([
      { status: "fulfilled", value: { runId: 1 } },
      { status: "rejected", reason: { message: "2 is gone" } },
      { status: "fulfilled", value: { runId: 3 } },
    ]);
    expect(await enqueuer.add(write(4))).toMatchObject({ runId: 4 });
  });

  it("sends each again under the number that it had: some may have been made before the error", async () => {
    const sent: number[][] = [];
    const enqueuer = new Enqueuer(async (writes, drawn) => {
      if (drawn.length === 0) drawn.push(...writes.map(({ taskId }) => taskId * 10));
      sent.push([...drawn]);
      if (writes.length > 1) throw new Error("the connection broke");
      return writes.map((_, place) => ({ runId: drawn[place] as number, created: true }));
    });
    const answers = await Promise.all([1, 2, 3].map((taskId) => enqueuer.add(write(taskId))));
    expect(answers.map(({ runId }) => runId)).toEqual([10, 20, 30]);
    expect(sent).toEqual([[10, 20, 30], [10], [20], [30]]);
  });
});
