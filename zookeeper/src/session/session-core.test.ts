import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ZooKeeperError } from "../base/errors.ts";
import { limits } from "../base/limits.ts";
import type { Connection } from "../connection/connection.ts";
import type { Call } from "../requests/call.ts";
import { Questions } from "../requests/questions.ts";
import { marginMs, SessionCore } from "./session-core.ts";

const timeoutMs = 80;

/** A fake connection with only the members that a session uses. */
const connection = () => ({
  welcome: { id: 7n, password: Buffer.alloc(16), timeoutMs, readOnly: false },
  renewedAt: performance.now(),
  takeUnanswered: () => [],
  end: () => undefined,
});

describe("calls that wait for a session", () => {
  const ask = (session: SessionCore, data: string, signal?: AbortSignal) => session.set("/a", data, { signal });
  const codes = (calls: Promise<unknown>[]) =>
    Promise.all(calls.map((call) => call.catch((error: { code: string }) => error.code)));

  test("fail in slices if there are many, so that the event loop is not blocked", async () => {
    const session = new SessionCore(timeoutMs, new Questions(""), "");
    const calls = Array.from({ length: 50_000 }, () => ask(session, ""));
    let failed = 0;
    const all = codes(calls.map((call) => call.finally(() => failed++)));
    const inTurns: number[] = [];
    const turn = () => {
      inTurns.push(failed);
      if (failed < calls.length) setImmediate(turn);
    };
    const nowMs = performance.now();
    // By this clock each rejection takes 0.1 ms, because the code reads the clock once before each.
    let looks = 0;
    vi.spyOn(performance, "now").mockImplementation(() => nowMs + looks++ / 10);
    try {
      session.failWaitingSince(nowMs, () => "nobody there");
      setImmediate(turn);
      expect(new Set(await all)).toEqual(new Set(["UNREACHABLE"]));
    } finally {
      vi.restoreAllMocks();
    }
    const slices = inTurns.map((count, index) => count - (inTurns[index - 1] ?? 0));
    // The first slice is rejected at once, so the first turn of the event loop counts two slices.
    const most = 2 * limits.sliceMs * 10;
    expect(Math.max(...slices)).toBeLessThanOrEqual(most);
    expect(slices.length).toBeGreaterThanOrEqual(calls.length / most - 1);
  });

  test("are sent in slices if there are many, and later calls follow them", async () => {
    const session = new SessionCore(timeoutMs, new Questions(""), "");
    const count = 20_000;
    for (let index = 0; index < count; index++) void session.exists(`/${index}`);
    const sent: string[] = [];
    const send = (call: Call) => void sent.push(call.question.path);
    const nowMs = performance.now();
    // By this clock each call takes 0.1 ms to send, because the code reads the clock once after each.
    let looks = 0;
    vi.spyOn(performance, "now").mockImplementation(() => nowMs + looks++ / 10);
    const inTurns: number[] = [];
    try {
      const welcome = { ...connection().welcome, timeoutMs: 60_000 };
      session.attach({ ...connection(), welcome, unanswered: 0, unsentBytes: 0, send } as unknown as Connection);
      for (let turn = 0; sent.length < count + 1 && turn < count; turn++) {
        inTurns.push(sent.length);
        if (turn === 1) void session.exists("/later");
        await new Promise(setImmediate);
      }
    } finally {
      vi.restoreAllMocks();
    }
    const slices = inTurns.map((length, index) => length - (inTurns[index - 1] ?? 0));
    // Each number is one slice: `attach` sends the first, and each turn of the event loop sends one more. Twice a slice's size is
    // allowed.
    expect(Math.max(...slices)).toBeLessThanOrEqual(2 * limits.sliceMs * 10);
    expect(sent).toEqual([...Array.from({ length: count }, (_, index) => `/${index}`), "/later"]);
    session.end(new ZooKeeperError("CLOSED", "closed"));
  });

  test("free their space for another call when aborted", async () => {
    const session = new SessionCore(timeoutMs, new Questions(""), "");
    const stop = new AbortController();
    const data = "x".repeat(900_000);
    const given = codes(Array.from({ length: 100 }, () => ask(session, data, stop.signal)));
    expect(await codes([ask(session, data)])).toEqual(["OVERLOADED"]);
    stop.abort();
    expect(new Set(await given)).toEqual(new Set(["ABORTED", "OVERLOADED"]));
    const next = codes([ask(session, data)]);
    session.end(new ZooKeeperError("CLOSED", "closed"));
    expect(await next).toEqual(["CLOSED"]);
  });
});

describe("a session that has expired by the clock", () => {
  let stoodStillMs = 0;
  /** Simulates a pause of the process: the clock advances by `ms`, but no timer fires and no socket is read. */
  const stall = (ms = timeoutMs) => {
    stoodStillMs += ms;
  };
  beforeEach(() => {
    stoodStillMs = 0;
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    const fakeNow = performance.now.bind(performance);
    vi.spyOn(performance, "now").mockImplementation(() => fakeNow() + stoodStillMs);
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.restoreAllMocks();
  });

  test("stays expired for a caller that has seen it, even if an answer arrives late", async () => {
    const session = new SessionCore(timeoutMs, new Questions(""), "");
    const line = connection();
    session.attach(line as unknown as Connection);
    expect(session.live).toBe(true);
    stall();
    expect(session.live).toBe(false);
    line.renewedAt = performance.now();
    expect(session.live).toBe(false);
    await Promise.resolve();
    expect(session.state).toBe("ended");
    expect(session.signal.reason).toMatchObject({ code: "SESSION_EXPIRED" });
  });

  test("is not resumed by a connection that came too late", () => {
    const session = new SessionCore(timeoutMs, new Questions(""), "");
    session.attach(connection() as unknown as Connection);
    session.detach(new Error("lost"));
    stall();
    session.attach(connection() as unknown as Connection);
    expect(session.state).toBe("ended");
  });

  test.each([
    ["the server still has it: it goes on", true],
    ["the server is silent: it ends", false],
  ])("the process was paused past the client's limit, but not past the servers', and %s", async (_, answers) => {
    const longMs = 4_000;
    const session = new SessionCore(longMs, new Questions(""), "");
    const line = {
      ...connection(),
      welcome: { id: 7n, password: Buffer.alloc(16), timeoutMs: longMs, readOnly: false },
      pings: 0,
    };
    const ping = async () => {
      if (!answers) return new Promise(() => undefined);
      line.pings += 1;
      // The answer to the first ping does not count, because that ping was sent before the pause.
      if (line.pings === 2) line.renewedAt = performance.now();
    };
    session.attach(Object.assign(line, { ping }) as unknown as Connection);
    stall(longMs - marginMs(longMs) - 2_500);
    await vi.advanceTimersByTimeAsync(longMs - marginMs(longMs));
    expect(session.state).toBe("connected");
    await vi.advanceTimersByTimeAsync(marginMs(longMs) / 4);
    expect([session.state, session.live, line.pings]).toEqual(answers ? ["connected", true, 2] : ["ended", false, 0]);
    session.end(new ZooKeeperError("CLOSED", "closed"));
  });

  test("continues if no caller has seen that it is over", () => {
    const session = new SessionCore(timeoutMs, new Questions(""), "");
    const line = connection();
    session.attach(line as unknown as Connection);
    stall();
    line.renewedAt = performance.now();
    expect(session.live).toBe(true);
    session.detach(new Error("lost"));
  });
});
