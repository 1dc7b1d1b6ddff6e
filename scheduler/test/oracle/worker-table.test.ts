import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { statusOf } from "../../src/api/problem-status.ts";
import {
  claimEvents,
  claimHappenings,
  claimParts,
  claimStandings,
  claimStandingTable,
  type SessionAnswer,
  sessionEvents,
  sessionStates,
  sessionTable,
} from "../../src/api/worker-table.ts";
import { type ErrorCode, errorCodes } from "../../src/base/errors.ts";
import { tableText } from "./table-text.ts";

/** Formats a cell as docs/reference/worker-failures.md does; "–" if the state stays the same. */
const cellOf = (state: string, next: string, answer: string | null, more = "") => {
  const words = [next === state ? "–" : next, ...(answer === null ? [] : [answer])].join(", ");
  return `${words}${more}`;
};
const shown = (answer: SessionAnswer) =>
  answer === null ? null : answer === "answered" ? "200" : `${statusOf(answer)} \`${answer}\``;

const sessions = tableText(sessionStates, sessionEvents, (state, event) => {
  const { next, answer, waiting } = sessionTable[state][event];
  return cellOf(state, next, shown(answer), waiting ? `; the one that waits: ${shown(waiting)}` : "");
});
const claims = tableText(claimStandings, claimEvents, (state, event) => {
  const [next, answer] = claimStandingTable[state][event];
  const isCode = answer !== null && Object.hasOwn(errorCodes, answer);
  const words = isCode ? `${statusOf(answer as ErrorCode)} \`${answer}\`` : answer;
  return cellOf(state, next, words);
});

describe("the tables of the worker protocol", () => {
  const page = readFileSync(new URL("../../../docs/reference/worker-failures.md", import.meta.url), "utf8");

  it("are documented in docs/reference/worker-failures.md, every state × every event", () => {
    expect(page).toContain(sessions);
    expect(page).toContain(claims);
    for (const word of [...sessionStates, ...sessionEvents, ...claimStandings, ...claimParts, ...claimHappenings])
      expect(page, `${word} is explained`).toContain(`**${word}**`);
  });

  it("every poll has an answer, and other events have none", () => {
    for (const state of sessionStates)
      for (const event of sessionEvents)
        expect(sessionTable[state][event].answer === null, `${state}, ${event}`).toBe(
          event === "silence" || event === "revoke",
        );
    for (const state of claimStandings)
      for (const event of claimHappenings) expect(claimStandingTable[state][event][1]).toBeNull();
  });

  it("a claim ends once: no transition leads back to a held claim", () => {
    const held = ["held", "cancelling"];
    for (const state of claimStandings.filter((one) => !held.includes(one)))
      for (const event of claimEvents)
        expect(held, `${state}, ${event}`).not.toContain(claimStandingTable[state][event][0]);
  });
});
