import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { claimEvents, claimStates, claimTable } from "../../src/run/claim.ts";
import { liveStates, outcomes } from "../../src/run/run.ts";
import { runEvents, runTransition } from "./run-table.ts";
import { tableText } from "./table-text.ts";

/** The tables as docs/reference/states.md shows them; "–" if an event changes nothing. */
const runTable = tableText(liveStates, runEvents, (state, event) => runTransition(state, event) ?? "–");
const claimTableText = tableText(claimStates, claimEvents, (state, event) => {
  const [next, act] = claimTable[state][event];
  if (act === "none") return next === state ? "–" : next;
  return next === state ? `– (${act})` : `${next} (${act})`;
});

describe("the run table", () => {
  it("is documented in docs/reference/states.md, every state × every event", () => {
    const page = readFileSync(new URL("../../../docs/reference/states.md", import.meta.url), "utf8");
    expect(page).toContain(runTable);
    expect(page).toContain(claimTableText);
    for (const word of [...liveStates, ...outcomes, ...runEvents, ...claimStates, ...claimEvents]) {
      expect(page, `${word} is explained`).toContain(`**${word}**`);
    }
  });

  it("has no transition from an ended run", () => {
    for (const state of [...outcomes, "withdrawn" as const])
      for (const event of runEvents) expect(runTransition(state, event)).toBeUndefined();
  });

  it("every live state can be reached and left, and every outcome can be reached", () => {
    const reached = new Set<string>(["held", "ready"]);
    for (const state of liveStates) for (const event of runEvents) reached.add(runTransition(state, event) ?? state);
    expect([...reached].sort()).toEqual([...liveStates, ...outcomes, "withdrawn"].sort());
    for (const state of liveStates)
      expect(
        runEvents.some((event) => ![state, undefined].includes(runTransition(state, event) as never)),
        state,
      ).toBe(true);
  });
});
