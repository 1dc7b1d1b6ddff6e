import { describe, expect, test } from "vitest";
import type { Clock } from "../../base/clock.ts";
import { Throttle } from "./throttle.ts";

function ticking() {
  const at = { mono: 0 };
  const clock: Clock = { monotonic: () => at.mono, wall: () => at.mono, after: () => () => undefined };
  return { at, throttle: new Throttle(clock) };
}
const stranger = (address: string) => ({ address, proven: null });
const wrong = async () => false;
const right = async () => true;
const busy = { code: "TOO_MANY_ATTEMPTS" };

describe("password guessing", () => {
  test("is slowed per account and address after five failures, ever longer, until the right password", async () => {
    const { at, throttle } = ticking();
    const from = (address: string, check: () => Promise<boolean>) => throttle.attempt("ann", stranger(address), check);
    for (let n = 0; n < 5; n++) expect(await from("10.0.0.1", wrong)).toBe(false);
    await expect(from("10.0.0.1", right)).rejects.toMatchObject({ ...busy, retryAfterMs: 1_000 });
    expect(await from("10.0.0.2", right)).toBe(true);
    at.mono += 1_000;
    expect(await from("10.0.0.1", wrong)).toBe(false);
    await expect(from("10.0.0.1", right)).rejects.toMatchObject({ ...busy, retryAfterMs: 2_000 });
    at.mono += 2_000;
    expect(await from("10.0.0.1", right)).toBe(true);
    for (let n = 0; n < 4; n++) expect(await from("10.0.0.1", wrong)).toBe(false);
    expect(await from("10.0.0.1", right)).toBe(true);
  });

  test("never slows an account as a whole: its owner can sign in from a new address and change the password", async () => {
    const { throttle } = ticking();
    for (let n = 0; n < 200; n++) expect(await throttle.attempt("ann", stranger(`10.0.0.${n}`), wrong)).toBe(false);
    expect(await throttle.attempt("ann", stranger("10.0.1.1"), right)).toBe(true);
    for (let n = 0; n < 5; n++) expect(await throttle.attempt("ann", stranger("10.0.1.2"), wrong)).toBe(false);
    await expect(throttle.attempt("ann", stranger("10.0.1.2"), right)).rejects.toMatchObject(busy);
    const proven = { address: "10.0.1.2", proven: "her browser" };
    expect(await throttle.attempt("ann", proven, right)).toBe(true);
    for (let n = 0; n < 5; n++) expect(await throttle.attempt("ann", proven, wrong)).toBe(false);
    await expect(throttle.attempt("ann", proven, right)).rejects.toMatchObject(busy);
  });

  test("does not delay users who signed in there before: they are checked before all strangers", async () => {
    const { throttle } = ticking();
    expect(await throttle.attempt("ann", stranger("10.0.0.1"), right)).toBe(true);
    const order: string[] = [];
    const open: (() => void)[] = [];
    const judged = (name: string) => () =>
      new Promise<boolean>((resolve) => {
        order.push(name);
        open.push(() => resolve(true));
      });
    const asked = Array.from({ length: 20 }, (_, n) =>
      throttle.attempt("ann", stranger(`10.0.2.${n}`), judged(`stranger ${n}`)),
    );
    asked.push(throttle.attempt("ann", stranger("10.0.0.1"), judged("known address")));
    asked.push(throttle.attempt("ann", { address: "10.0.9.9", proven: "browser" }, judged("known browser")));
    // Attempts for which the queue has no room are refused before any queued attempt is checked.
    const refused = Promise.all(asked.slice(9, 20).map((one) => expect(one).rejects.toMatchObject(busy)));
    for (let n = 0; n < 3; n++) {
      open.shift()?.();
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(order.slice(0, 4)).toEqual(["stranger 0", "known address", "known browser", "stranger 1"]);
    while (open.length > 0) {
      open.shift()?.();
      await new Promise((resolve) => setImmediate(resolve));
    }
    await refused;
    const ended = await Promise.allSettled(asked);
    expect(ended.filter(({ status }) => status === "fulfilled")).toHaveLength(11);
  });

  test("is slowed per address after twenty accounts, but users with the right password are not", async () => {
    const { throttle } = ticking();
    for (let n = 0; n < 100; n++) expect(await throttle.attempt(`user-${n}`, stranger("10.0.0.9"), right)).toBe(true);
    for (let n = 0; n < 20; n++)
      expect(await throttle.attempt(`name-${n}`, stranger("2001:db8::1"), wrong)).toBe(false);
    await expect(throttle.attempt("another", stranger("2001:db8::ffff"), right)).rejects.toMatchObject(busy);
    expect(await throttle.attempt("another", stranger("2001:db8:0:1::1"), right)).toBe(true);
  });

  test("is not counted for attempts that were not checked, if the store was away or the queue was full", async () => {
    const { throttle } = ticking();
    const away = () => Promise.reject(new Error("the store is away"));
    for (let n = 0; n < 30; n++)
      await expect(throttle.attempt("ann", stranger("10.0.0.1"), away)).rejects.toThrow("away");
    const open = new Set<() => void>();
    const slowly = () => new Promise<boolean>((resolve) => open.add(() => resolve(false)));
    const waiting = Array.from({ length: 9 }, (_, n) => throttle.attempt(`user-${n}`, stranger(`10.0.1.${n}`), slowly));
    for (let n = 0; n < 30; n++)
      await expect(throttle.attempt("ann", stranger("10.0.0.1"), right)).rejects.toMatchObject(busy);
    while (open.size > 0) {
      for (const end of open) {
        open.delete(end);
        end();
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
    await Promise.all(waiting);
    expect(await throttle.attempt("ann", stranger("10.0.0.1"), right)).toBe(true);
  });

  test("gains nothing from concurrency: one attempt is checked at a time, eight wait, and more are refused", async () => {
    const { throttle } = ticking();
    let judged = 0;
    let most = 0;
    const slowly = async () => {
      most = Math.max(most, ++judged);
      await new Promise((resolve) => setImmediate(resolve));
      judged--;
      return false;
    };
    const asked = Array.from({ length: 30 }, (_, n) => throttle.attempt(`user-${n}`, stranger(`10.0.1.${n}`), slowly));
    const ended = await Promise.allSettled(asked);
    expect(most).toBe(1);
    expect(ended.filter(({ status }) => status === "fulfilled")).toHaveLength(9);
  });
});
