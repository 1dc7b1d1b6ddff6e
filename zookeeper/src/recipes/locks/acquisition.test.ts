import { describe, expect, it } from "vitest";
import { ZooKeeperError } from "../../base/errors.ts";
import type { Session, SessionState } from "../../operations/session.ts";
import { Acquisition, limited } from "./acquisition.ts";
import { Hold } from "./hold.ts";

/** A fake session with only the members that a hold uses before it begins. */
function aSession() {
  const listeners = new Set<(state: SessionState) => void>();
  const session = {
    live: true,
    state: "connected",
    signal: new AbortController().signal,
    onState: (listener: (state: SessionState) => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    delete: async () => undefined,
  };
  return { session: session as unknown as Session, raw: session, listeners };
}

function aPromise<T>() {
  let settle: { resolve: (value: T) => void; reject: (error: unknown) => void } | undefined;
  const promise = new Promise<T>((resolve, reject) => {
    settle = { resolve, reject };
  });
  return { promise, resolve: (value: T) => settle?.resolve(value), reject: (error: unknown) => settle?.reject(error) };
}

const turns = () => new Promise((resolve) => setImmediate(resolve));

describe("limited", () => {
  it("returns a late result if no caller waits any more", async () => {
    const late = aPromise<string>();
    const back: string[] = [];
    let told: AbortSignal | undefined;
    const result = limited(
      "it",
      { limitMs: 1 },
      ({ signal }) => {
        told = signal;
        return late.promise;
      },
      (value) => back.push(value),
    );
    expect(await result).toBeUndefined();
    expect(told?.aborted).toBe(true);
    late.resolve("held");
    await turns();
    expect(back).toEqual(["held"]);
  });

  it("passes on a result that is in time, and ignores late failures", async () => {
    const back: string[] = [];
    const giveBack = (value: string) => back.push(value);
    expect(await limited("it", { limitMs: 30_000 }, async () => "held", giveBack)).toBe("held");
    const abort = new AbortController();
    const late = aPromise<string>();
    const given = limited("it", { signal: abort.signal }, () => late.promise, giveBack);
    abort.abort();
    await expect(given).rejects.toMatchObject({ code: "ABORTED" });
    late.reject(new ZooKeeperError("ABORTED", "as it was asked to"));
    await turns();
    expect(back).toEqual([]);
  });

  it("passes wait: false for a limit of 0, and sets no deadline for the server then", async () => {
    const slow = aPromise<string>();
    let wait: boolean | undefined;
    const result = limited(
      "it",
      { limitMs: 0 },
      (options) => {
        wait = options.wait;
        return slow.promise;
      },
      () => undefined,
    );
    await new Promise((resolve) => setTimeout(resolve, 20));
    slow.resolve("free");
    expect(await result).toBe("free");
    expect(wait).toBe(false);
  });
});

describe("an owner", () => {
  it("that asks twice at once makes one attempt; if that fails, the second call makes its own", async () => {
    const attempts: ReturnType<typeof aPromise<Hold | undefined>>[] = [];
    const acquisition = new Acquisition("it", () => {
      const attempt = aPromise<Hold | undefined>();
      attempts.push(attempt);
      return attempt.promise;
    });
    const first = acquisition.acquire({ owner: "me" });
    const second = acquisition.acquire({ owner: "me" });
    expect(await acquisition.tryAcquire({ owner: "me" })).toBeUndefined();
    expect(attempts).toHaveLength(1);
    const failed = expect(first).rejects.toMatchObject({ code: "SESSION_EXPIRED" });
    attempts[0]?.reject(new ZooKeeperError("SESSION_EXPIRED", "gone"));
    await failed;
    await turns();
    expect(attempts).toHaveLength(2);
    const { session, listeners } = aSession();
    attempts[1]?.resolve(new Hold(session, "/it/1", "it"));
    const held = await second;
    expect(acquisition.of("me")?.path).toBe("/it/1");
    await held.release();
    expect(acquisition.of("me")).toBeUndefined();
    expect(listeners.size).toBe(0);
  });

  it("holds nothing once the session is not live, even before its end is reported", async () => {
    const { session, raw, listeners } = aSession();
    const acquisition = new Acquisition("it", async () => new Hold(session, "/it/1", "it"));
    const held = await acquisition.acquire({ owner: "me" });
    raw.live = false;
    expect([held.held, held.signal.aborted, acquisition.of("me")]).toEqual([false, false, undefined]);
    await expect(held.release()).rejects.toMatchObject({ code: "NOT_HELD", path: "/it/1" });
    for (const listener of listeners) listener("ended");
    expect(held.signal.reason).toMatchObject({ code: "NOT_HELD" });
    expect(listeners.size).toBe(0);
  });
});
