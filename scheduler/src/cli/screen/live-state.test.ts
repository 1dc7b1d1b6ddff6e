import { describe, expect, it } from "vitest";
import type { RunNotice } from "../../run/handler.ts";
import { zoneOf } from "../../schedule/zone.ts";
import { endLine, endOf, errorWords } from "../runs/event-lines.ts";
import { type Frame, frameLines, LiveState } from "./live-state.ts";
import { styleOf, uncoloured } from "./style.ts";
import { styledWidth } from "./styled-text.ts";
import { widthOf } from "./text.ts";

const utc = zoneOf("UTC");
const dueMs = Date.parse("2026-11-28T14:03:20Z");
const notice = (over: Partial<RunNotice>): RunNotice => ({
  kind: "ended",
  runId: 42,
  task: "heartbeat",
  attempt: 1,
  slotMs: dueMs,
  dueMs,
  readyMs: dueMs,
  startedMs: dueMs + 1,
  endedMs: dueMs + 4,
  outcome: "succeeded",
  error: null,
  ...over,
});
const line = (over: Partial<RunNotice>) => endLine(endOf(notice(over)) as never, utc, uncoloured);

describe("a line about a run", () => {
  it("shows the time, the run, its duration and its delay", () => {
    expect(line({})).toBe("14:03:20.001  heartbeat             run 42    ✓ 3 ms   (1 ms late)");
  });

  it("shows a failure and a retry with the error's message", () => {
    const error = JSON.stringify({ message: "no route to bank", stack: "Error: …" });
    expect(line({ outcome: "failed", error, attempt: 3 })).toBe(
      "14:03:20.001  heartbeat             run 42    ✗ 3 ms  attempt 3  no route to bank",
    );
    expect(line({ kind: "retry", outcome: "failed", error })).toContain(
      "↻ 3 ms  attempt 1 failed, tries again:  no route to bank",
    );
    expect(
      line({ outcome: "cancelled", error: JSON.stringify({ code: "CANCELLED", message: "not needed" }) }),
    ).toContain("⊘ cancelled  not needed");
  });

  it("escapes control characters in names and messages", () => {
    expect(line({ outcome: "failed", error: JSON.stringify({ message: "\u001b[2J\nboo" }) })).toContain("␛[2J boo");
  });

  it("shows error codes only if they are Carillon's own", () => {
    expect(errorWords({ code: "TIMEOUT", message: "over 2 s" })).toBe("TIMEOUT: over 2 s");
    expect(errorWords({ code: "ECONNREFUSED", message: "refused" })).toBe("refused");
    expect(errorWords({ message: "" })).toBe('{"message":""}');
    expect(errorWords(null)).toBeNull();
  });
});

describe("the live view", () => {
  const frame = (over: Partial<Frame> = {}): Frame => ({
    header: ["carillon 0.1.0", "embedded PostgreSQL 18 in .carillon", "node atlas leads, term 7"],
    upcoming: [
      { atMs: dueMs + 5_000, task: "heartbeat", words: "every 5 seconds" },
      { atMs: dueMs + 3_600_000, task: "settle-accounts", words: "once, key settle-eu" },
    ],
    nowMs: dueMs + 2_000,
    upMs: 61_000,
    phase: "running",
    width: 120,
    height: 30,
    zone: utc,
    style: uncoloured,
    ...over,
  });

  const busy = () => {
    const state = new LiveState();
    for (let runId = 1; runId <= 50; runId++) {
      state.observe(notice({ kind: "started", runId, endedMs: null, outcome: null }));
      if (runId === 50) continue;
      const failed = runId % 10 === 0;
      const error = failed ? JSON.stringify({ message: "refused ".repeat(20) }) : null;
      state.observe(notice({ runId, outcome: failed ? "failed" : "succeeded", error }));
    }
    return state;
  };

  it("shows the leader, the next slots, running and ended runs, and counts", () => {
    const lines = frameLines(busy(), frame());
    expect(lines[0]).toBe("carillon 0.1.0   embedded PostgreSQL 18 in .carillon   node atlas leads, term 7");
    expect(lines[1]).toBe("  next     14:03:25  heartbeat        every 5 seconds");
    expect(lines[2]).toBe("           15:03:20  settle-accounts  once, key settle-eu");
    expect(lines[3]).toBe("  running  1: heartbeat run 50 2.0 s");
    expect(lines.at(-2)).toContain("run 49");
    expect(lines.at(-1)).toBe("  49 runs   ✓ 45   ✗ 4   late p50 1 ms, max 1 ms   up 1 min 1 s   Ctrl-C ends");
  });

  it.each([
    [60, 24],
    [20, 8],
    [40, 3],
    [10, 1],
    [200, 60],
  ])("fits %d columns and %d lines", (width, height) => {
    for (const style of [uncoloured, styleOf(true)]) {
      const lines = frameLines(busy(), frame({ width, height, style }));
      expect(lines.length).toBeLessThanOrEqual(height);
      for (const one of lines) expect(styledWidth(one)).toBeLessThanOrEqual(width);
    }
  });

  it("shows that it is stopping before anything else, also on a narrow terminal", () => {
    const last = frameLines(busy(), frame({ phase: "stopping", width: 60 })).at(-1) as string;
    expect(last).toBe("  stopping: waiting for what runs (Ctrl-C: at once)");
    expect(widthOf(last)).toBeLessThanOrEqual(60);
  });

  it("says that nothing is planned if there are no slots", () => {
    expect(frameLines(new LiveState(), frame({ upcoming: [] }))[1]).toBe("  next     nothing planned");
  });

  it("counts retries separately, and uses bounded memory", () => {
    const state = new LiveState();
    for (let runId = 0; runId < 5_000; runId++) {
      state.observe(notice({ kind: "started", runId, startedMs: dueMs + runId }));
      state.observe(notice({ runId, kind: runId % 2 === 0 ? "retry" : "ended", outcome: "failed", error: "{}" }));
    }
    expect(state.counts).toEqual({ started: 5_000, succeeded: 0, failed: 2_500, cancelled: 0, retried: 2_500 });
    expect(state.running.size).toBe(0);
    expect(state.last(10_000).length).toBeLessThanOrEqual(400);
    // Only the latest 1,000 starts count for the lateness.
    expect(state.lateness()).toEqual({ p50: 4_500, p99: 4_990, max: 4_999 });
  });
});
