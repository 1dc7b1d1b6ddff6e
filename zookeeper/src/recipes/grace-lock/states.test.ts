import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { graceLockEvents, nextStep, situations, stateOf, stepText } from "./states.ts";

const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;

describe("the state table of the grace lock", () => {
  it("is documented in docs/coordination/grace-lock.md, every state × every event", () => {
    const page = readFileSync(new URL("../../../../docs/coordination/grace-lock.md", import.meta.url), "utf8");
    const table = [
      row(["event", ...situations]),
      `|${"---|".repeat(situations.length + 1)}`,
      ...graceLockEvents.map((event) => row([event, ...situations.map((situation) => stepText(situation, event))])),
    ];
    expect(page).toContain(table.join("\n"));
    for (const word of [...graceLockEvents, ...situations.map(stateOf)]) expect(page, word).toContain(`**${word}**`);
  });

  it("becomes owner only by taking the lock, and runs only after a begin", () => {
    for (const from of situations)
      for (const event of graceLockEvents) {
        const { to } = nextStep(from, event);
        if (stateOf(to) === "OWN" && stateOf(from) !== "OWN") expect(event, from).toBe("took");
        if (to.endsWith("running") && !from.endsWith("running")) expect(event, from).toBe("began");
      }
  });

  it("a running use stops by finishing or by a notification, never silently", () => {
    for (const from of situations.filter((situation) => situation.endsWith("running")))
      for (const event of graceLockEvents) {
        const { to, act } = nextStep(from, event);
        if (!to.endsWith("running") && event !== "finished") expect(act, `${from}, ${event}`).toBe("lose");
        if (to.endsWith("running")) expect(act, `${from}, ${event}`).not.toBe("lose");
      }
  });

  it("reclaims at once only a lock that vanished under a running use", () => {
    for (const from of situations)
      for (const event of graceLockEvents) {
        const { to, act } = nextStep(from, event);
        if (act === "reclaim")
          expect([from.endsWith("running"), to], `${from}, ${event}`).toEqual([true, "WAITING running"]);
        if (from === "OWN running" && to === "WAITING running") expect(act, event).toBe("reclaim");
      }
  });

  it("each state can be reached from CREATED, and left", () => {
    const reached = new Set<string>(["CREATED"]);
    for (const _ of situations)
      for (const from of situations.filter((situation) => reached.has(situation)))
        for (const event of graceLockEvents) reached.add(nextStep(from, event).to);
    expect([...reached].sort()).toEqual([...situations].sort());
    for (const from of situations)
      expect(
        graceLockEvents.some((event) => nextStep(from, event).to !== from),
        from,
      ).toBe(true);
  });
});
