import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Readings } from "./readings.ts";

/** Waits one turn of the event loop, which is enough for pending work that needs no timer. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

/** Readings whose read operations the test resolves or rejects. */
function stage(most = 2) {
  const readings = new Readings(most);
  const open: { path: string; deep: boolean; round: number; answer: (error?: unknown) => void }[] = [];
  let idles = 0;
  const done = readings.run(
    (path, deep, round) =>
      new Promise((resolve, reject) => {
        open.push({ path, deep, round, answer: (error) => (error === undefined ? resolve() : reject(error)) });
      }),
    () => {
      idles += 1;
    },
  );
  return {
    readings,
    done,
    open,
    idles: () => idles,
    async answer(error?: unknown) {
      open.shift()?.answer(error);
      await settle();
    },
  };
}

describe("readings", () => {
  it("reads at most the allowed number of paths at once", async () => {
    const { readings, open, answer, done } = stage(2);
    for (const path of ["/a", "/b", "/c"]) readings.add(path, false);
    await settle();
    expect(open.map(({ path }) => path)).toEqual(["/a", "/b"]);
    await answer();
    expect(open.map(({ path }) => path)).toEqual(["/b", "/c"]);
    expect(readings.size).toBe(2);
    await answer();
    await answer();
    readings.end();
    await done;
  });

  it("reads a path once more after the current reading, however often it changed", async () => {
    const { readings, open, answer, done, idles } = stage(2);
    readings.add("/a", false);
    await settle();
    readings.add("/a", false);
    readings.add("/a", true);
    readings.add("/a", false);
    await settle();
    expect(open.length).toBe(1);
    await answer();
    expect(open).toMatchObject([{ path: "/a", deep: true }]);
    await answer();
    expect(open.length).toBe(0);
    expect(idles()).toBeGreaterThan(0);
    readings.end();
    await done;
  });

  it("lists the paths not found in this round, once", () => {
    const readings = new Readings(1);
    readings.meet("/a", readings.round);
    readings.renew();
    readings.meet("/b", readings.round - 1);
    readings.meet("/c", readings.round);
    expect(readings.missed(["/a", "/b", "/c"])).toEqual(["/a", "/b"]);
    expect(readings.missed(["/a", "/b", "/c"])).toEqual([]);
  });

  it("ends with the first error, once no reading is in flight", async () => {
    const { readings, open, answer, done } = stage(2);
    let ended = false;
    const watched = done.finally(() => {
      ended = true;
    });
    watched.catch(() => undefined); // its rejection is checked below
    readings.add("/a", false);
    readings.add("/b", false);
    readings.add("/c", false);
    await settle();
    await answer(new Error("first"));
    expect(ended).toBe(false);
    expect(open.map(({ path }) => path)).toEqual(["/b"]);
    await answer(new Error("second"));
    await expect(watched).rejects.toThrow("first");
  });

  it("has read every path after its last change, in any order of changes and answers", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(fc.boolean(), fc.nat(4)), { maxLength: 40 }), async (steps) => {
        const { readings, open, answer, done } = stage(3);
        const changedAt = new Map<string, number>();
        const readAt = new Map<string, number>();
        let now = 0;
        const begun = new Set<object>();
        const note = () => {
          for (const one of open) {
            if (begun.has(one)) continue;
            begun.add(one);
            readAt.set(one.path, ++now);
          }
        };
        for (const [change, which] of steps) {
          if (change) {
            changedAt.set(`/${which}`, ++now);
            readings.add(`/${which}`, false);
            await settle();
          } else await answer();
          note();
          expect(new Set(open.map(({ path }) => path)).size).toBe(open.length);
        }
        while (open.length > 0) {
          await answer();
          note();
        }
        for (const [path, at] of changedAt) expect(readAt.get(path)).toBeGreaterThan(at);
        readings.end();
        await done;
      }),
      { numRuns: 100 },
    );
  });

  it("skips paths that are no longer needed, unless they are being read", async () => {
    const { readings, open, answer, done, idles } = stage(1);
    readings.add("/a", false);
    await settle();
    readings.add("/b", false);
    expect(readings.drop("/a")).toBe(false);
    expect(readings.drop("/b")).toBe(true);
    await answer();
    expect(open).toEqual([]);
    expect(idles()).toBe(2);
    readings.end();
    await done;
  });
});
