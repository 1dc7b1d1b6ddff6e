import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  checkRequest,
  likeOf,
  type OperationRequest,
  operationEvents,
  operationStates,
  operationTransition,
} from "./operations.ts";

describe("the state table of an operation", () => {
  it("is documented in docs/tasks/operations.md, every state × every event", () => {
    const page = readFileSync(new URL("../../../docs/tasks/operations.md", import.meta.url), "utf8");
    const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
    const cell = (state: (typeof operationStates)[number], event: (typeof operationEvents)[number]) =>
      operationTransition(state, event) ?? "–";
    const table = [
      row(["event", ...operationStates]),
      `|---|${"---|".repeat(operationStates.length)}`,
      ...operationEvents.map((event) => row([event, ...operationStates.map((state) => cell(state, event))])),
    ].join("\n");
    expect(page).toContain(table);
    for (const word of [...operationStates, ...operationEvents]) expect(page, word).toContain(`**${word}**`);
  });
});

describe("a request", () => {
  const request = (given: Partial<OperationRequest>): OperationRequest => ({
    kind: "cancel",
    filter: { task: "a" },
    author: "me",
    reason: "",
    ...given,
  });
  const range = { fromMs: 1, toMs: 2, perSecond: null, reverse: false, missed: false };

  it("without any filter is refused, unless it names all", () => {
    expect(() => checkRequest(request({ filter: {} }), 5)).toThrowError(
      expect.objectContaining({ code: "FILTER_EMPTY" }),
    );
    expect(() => checkRequest(request({ filter: { all: true } }), 5)).not.toThrow();
  });

  it.each<[string, Partial<OperationRequest>]>([
    ["times the wrong way round", { filter: { sinceMs: 2, untilMs: 1 } }],
    ["cancelling what has ended", { filter: { states: ["failed"] } }],
    ["running again what lives", { kind: "rerun", filter: { states: ["ready"] } }],
    ["pausing runs", { kind: "pause", filter: { states: ["ready"] } }],
    ["cancelling by what failed", { filter: { fingerprint: "c5" } }],
    ["pausing since a time", { kind: "pause", filter: { sinceMs: 1 } }],
    ["an end of what is no pause", { kind: "resume", pauseUntilMs: 9 }],
    ["a pause that is over", { kind: "pause", pauseUntilMs: 5 }],
    ["running one run again as many", { kind: "rerun", filter: { runId: 1 } }],
    ["a backfill of all tasks", { kind: "backfill", filter: { all: true }, range }],
    ["a backfill without a range", { kind: "backfill" }],
    ["from after to", { kind: "backfill", range: { ...range, fromMs: 3 } }],
    ["no time", { kind: "backfill", range: { ...range, toMs: Number.NaN } }],
    ["no rate", { kind: "backfill", range: { ...range, perSecond: 0 } }],
  ])("is refused for %s", (_, given) => {
    expect(() => checkRequest(request(given), 5)).toThrowError(expect.objectContaining({ code: "OPTION_INVALID" }));
  });

  it("accepts * and ? as wildcards in names, and no other wildcards", () => {
    expect(likeOf("a_b%c\\*d?")).toBe("a\\_b\\%c\\\\%d_");
  });
});
