import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { stand, tryNow } from "./standing.ts";

describe("a stream that is kept open", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test("is reopened after each end, ever later while no data arrives, until its reader has received everything", async () => {
    const over = new AbortController();
    const broken: [unknown, number][] = [];
    const ends: (() => Promise<boolean>)[] = [
      async () => false,
      () => Promise.reject(new Error("reset")),
      async () => false,
      async () => true,
    ];
    let opened = 0;
    const standing = stand(
      async ({ heard }) => {
        if (opened === 2) heard();
        return (ends[opened++] as (typeof ends)[number])();
      },
      over.signal,
      (error, waitMs) => broken.push([error, waitMs]),
    );
    await vi.advanceTimersByTimeAsync(499);
    expect(opened).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(opened).toBe(2);
    tryNow();
    await vi.advanceTimersByTimeAsync(0);
    expect(opened).toBe(3);
    await vi.advanceTimersByTimeAsync(500);
    await standing;
    expect([opened, broken]).toEqual([4, [[undefined, 500] as unknown, [new Error("reset"), 1_000], [undefined, 500]]]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(opened).toBe(4);
  });

  test("counts as broken after 40 s without data, and is not reopened once it is aborted", async () => {
    const over = new AbortController();
    let opened = 0;
    const standing = stand(
      ({ signal, heard }) => {
        if (opened++ === 0) setTimeout(heard, 30_000);
        return new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("cut"))));
      },
      over.signal,
      () => undefined,
    );
    await vi.advanceTimersByTimeAsync(69_999);
    expect(opened).toBe(1);
    await vi.advanceTimersByTimeAsync(501);
    expect(opened).toBe(2);
    over.abort();
    await standing;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(opened).toBe(2);
  });
});
