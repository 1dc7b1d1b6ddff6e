import { describe, expect, it } from "vitest";
import { VirtualClock } from "../../test/support/virtual-clock.ts";
import { systemClock } from "../base/clock.ts";
import type { Enqueued, EnqueueWrite } from "../run/run-record.ts";
import { Enqueuer } from "./enqueuer.ts";

const write = (taskId: number): EnqueueWrite => ({
  taskId,
  payload: null,
  dueMs: 0,
  key: null,
  priority: null,
  source: "enqueue",
});

/** A fake store whose statements end when the test wants. */
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
    systemClock,
  );
  return { enqueuer, statements };
}
const turn = () => new Promise((resolve) => setImmediate(resolve));

describe("batched enqueueing", () => {
  it("calls of one turn, or made while a statement is in flight, share a statement; each gets its own answer", async () => {
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

  it("many calls go in two concurrent statements, in order; calls with keys go one statement after the other", async () => {
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

  it("bounds the size of a statement", async () => {
    const { enqueuer, statements } = line();
    const all = Promise.all(Array.from({ length: 4_500 }, (_, i) => enqueuer.add(write(i))));
    for (let i = 0; i < 3; i++) {
      await turn();
      statements[i]?.end();
    }
    expect(await all).toHaveLength(4_500);
    expect(statements.map(({ writes }) => writes.length)).toEqual([2_000, 2_000, 500]);
  });

  it("if one call is at fault, each call gets its own answer", async () => {
    const enqueuer = new Enqueuer(async (writes) => {
      if (writes.some(({ taskId }) => taskId === 2)) throw new Error("2 is gone");
      return writes.map(({ taskId }) => ({ runId: taskId, created: true }));
    }, systemClock);
    const answers = await Promise.allSettled([1, 2, 3].map((taskId) => enqueuer.add(write(taskId))));
    expect(answers).toMatchObject([
      { status: "fulfilled", value: { runId: 1 } },
      { status: "rejected", reason: { message: "2 is gone" } },
      { status: "fulfilled", value: { runId: 3 } },
    ]);
    expect(await enqueuer.add(write(4))).toMatchObject({ runId: 4 });
  });

  it("repeats each call with its run number, because some runs may have been created before the error", async () => {
    const sent: number[][] = [];
    const enqueuer = new Enqueuer(async (writes, drawn) => {
      if (drawn.length === 0) drawn.push(...writes.map(({ taskId }) => taskId * 10));
      sent.push([...drawn]);
      if (writes.length > 1) throw new Error("the connection broke");
      return writes.map((_, place) => ({ runId: drawn[place] as number, created: true }));
    }, systemClock);
    const answers = await Promise.all([1, 2, 3].map((taskId) => enqueuer.add(write(taskId))));
    expect(answers.map(({ runId }) => runId)).toEqual([10, 20, 30]);
    expect(sent).toEqual([[10, 20, 30], [10], [20], [30]]);
  });

  describe("while the store is away", () => {
    /**
     * A fake store whose statements fail repeatedly until their signal is aborted, like those of the real store while it is unreachable.
     */
    function away() {
      const clock = new VirtualClock(0);
      const signals: AbortSignal[] = [];
      const enqueuer = new Enqueuer((_writes, _drawn, signal) => {
        signals.push(signal);
        return new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("away"))));
      }, clock);
      return { clock, enqueuer, signals };
    }

    it("keeps each call until its timeout, and repeats the statement while any call waits", async () => {
      const { clock, enqueuer, signals } = away();
      const short = enqueuer.add(write(1), { timeoutMs: 100 });
      const usual = enqueuer.add(write(2));
      const ends: string[] = [];
      short.catch(({ code }) => ends.push(`short ${code}`));
      usual.catch(({ code }) => ends.push(`usual ${code}`));
      await turn();
      await clock.advance(100);
      expect(ends).toEqual(["short ENQUEUE_TIMEOUT"]);
      expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
      await clock.advance(29_900);
      await expect(usual).rejects.toMatchObject({ code: "ENQUEUE_TIMEOUT", message: /is not known/, hint: /key/ });
      expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
    });

    it("reports to a call queued behind a statement that no run was created, and creates none later", async () => {
      const { clock, enqueuer, signals } = away();
      void enqueuer.add(write(1)).catch(() => undefined); // The fake store of this test never responds.
      await turn();
      const behind = enqueuer.add(write(2), { timeoutMs: 50 });
      const told = expect(behind).rejects.toMatchObject({ code: "ENQUEUE_TIMEOUT", message: /no run was made/ });
      await clock.advance(50);
      await told;
      await clock.advance(40_000);
      await turn();
      expect(signals).toHaveLength(1);
    });

    it("times out a hundred thousand unsent calls without a scan of all for each", async () => {
      const { clock, enqueuer, signals } = away();
      const codes = new Map<string, number>();
      const count = ({ code }: { code: string }) => codes.set(code, (codes.get(code) ?? 0) + 1);
      const all = [enqueuer.add(write(1), { timeoutMs: 60_000 }).catch(count)];
      await turn();
      for (let n = 0; n < 100_000; n++) all.push(enqueuer.add(write(n), { timeoutMs: 50 }).catch(count));
      const began = performance.now();
      clock.advance(50);
      expect(performance.now() - began, "to look through all for each takes minutes").toBeLessThan(60_000);
      await turn();
      expect([...codes]).toEqual([["ENQUEUE_TIMEOUT", 100_000]]);
      clock.advance(60_000);
      await Promise.all(all);
      expect(signals, "none of them was sent").toHaveLength(1);
    });

    it("ends a call at once by its abort signal, with the signal's reason, or when the process stops", async () => {
      const { enqueuer } = away();
      const end = new AbortController();
      const [mine, other] = [enqueuer.add(write(1), { signal: end.signal }), enqueuer.add(write(2))];
      await turn();
      end.abort(new Error("no more"));
      await expect(mine).rejects.toThrow("no more");
      await expect(enqueuer.add(write(3), { signal: end.signal })).rejects.toThrow("no more");
      enqueuer.close();
      await expect(other).rejects.toMatchObject({ code: "STOPPED" });
    });
  });
});
