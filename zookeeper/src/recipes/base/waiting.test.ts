import { describe, expect, it } from "vitest";
import { Listeners } from "./listeners.ts";
import { pause, waitFor } from "./waiting.ts";

describe("waiting", () => {
  it("gives the awaited value, and cleans up once", async () => {
    let undone = 0;
    const undo = () => {
      undone += 1;
    };
    const got = waitFor<number>("a number", { limitMs: 60_000 }, (resolve) => {
      setImmediate(() => {
        resolve(7);
        resolve(8);
      });
      return undo;
    });
    expect(await got).toBe(7);
    expect(undone).toBe(1);
  });

  it("cleans up if it is fulfilled at once", async () => {
    let undone = 0;
    const got = waitFor<number>("a number", {}, (resolve) => {
      resolve(1);
      return () => {
        undone += 1;
      };
    });
    expect(await got).toBe(1);
    expect(undone).toBe(1);
  });

  it("ends without a value when the time limit is over", async () => {
    let undone = false;
    const got = await waitFor<number>("a number", { limitMs: 1 }, () => () => {
      undone = true;
    });
    expect(got).toBeUndefined();
    expect(undone).toBe(true);
  });

  it("refuses an invalid time limit", async () => {
    await expect(waitFor("x", { limitMs: Number.NaN }, () => () => undefined)).rejects.toMatchObject({
      code: "OPTION_INVALID",
    });
    await expect(waitFor("x", { limitMs: -1 }, () => () => undefined)).rejects.toMatchObject({
      code: "OPTION_INVALID",
    });
  });

  it("rejects by its abort signal, before and during the wait, and removes its listener from the signal", async () => {
    const begun: string[] = [];
    const never = () => {
      begun.push("begun");
      return () => undefined;
    };
    await expect(waitFor("x", { signal: AbortSignal.abort() }, never)).rejects.toMatchObject({ code: "ABORTED" });
    expect(begun).toEqual([]);
    const control = new AbortController();
    const got = waitFor("x", { signal: control.signal }, never);
    control.abort(new Error("enough"));
    await expect(got).rejects.toMatchObject({ code: "ABORTED", cause: control.signal.reason });
    expect(begun).toEqual(["begun"]);
  });

  it("rejects with the error that occurred", async () => {
    const got = waitFor("x", {}, (_, reject) => {
      setImmediate(() => reject(new Error("broken")));
      return () => undefined;
    });
    await expect(got).rejects.toThrow("broken");
  });

  it("pauses at most until its abort signal", async () => {
    const control = new AbortController();
    const paused = pause(3_600_000, control.signal);
    control.abort();
    await paused;
    await pause(3_600_000, control.signal);
    await pause(1);
  });
});

describe("listeners", () => {
  it("are called until they are removed, also if that happens during a call", () => {
    const listeners = new Listeners<(text: string) => void>();
    const told: string[] = [];
    const leave: (() => void)[] = [];
    leave.push(
      listeners.add((text) => {
        told.push(`first ${text}`);
        leave[1]?.();
      }),
      listeners.add((text) => told.push(`second ${text}`)),
    );
    listeners.tell((one) => one("a"));
    expect(told).toEqual(["first a"]);
    listeners.clear();
    listeners.tell((one) => one("b"));
    expect(told).toEqual(["first a"]);
  });

  it("that throw do not affect other listeners, and the error surfaces", async () => {
    const uncaught: unknown[] = [];
    const before = process.listeners("uncaughtException");
    process.removeAllListeners("uncaughtException");
    process.once("uncaughtException", (error) => uncaught.push(error));
    try {
      const listeners = new Listeners<() => void>();
      let told = false;
      listeners.add(() => {
        throw new Error("a listener's own fault");
      });
      listeners.add(() => {
        told = true;
      });
      listeners.tell((one) => one());
      expect(told).toBe(true);
      await new Promise((resolve) => setImmediate(resolve));
      expect(uncaught).toMatchObject([{ message: "a listener's own fault" }]);
    } finally {
      for (const listener of before) process.on("uncaughtException", listener);
    }
  });
});
