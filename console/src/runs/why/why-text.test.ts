import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { catalogues, type Message, wordsIn } from "../../messages/texts.ts";
import { type Reason, whyText } from "./why-text.ts";

const now = Date.parse("2030-01-01T00:00:00Z");
const english = wordsIn("en", "UTC");
const said = (code: string, shown: Reason["shown"] = {}) =>
  whyText({ code, words: "as the server says", shown }, english, now);

test.each<[string, Reason["shown"], string]>([
  ["not-due", { due: "2030-01-01T00:05:00Z", attempt: 1 }, "It is due in 5 min."],
  ["not-due", { due: "2030-01-01T00:05:00Z", attempt: 3 }, "Attempt 3 is due in 5 min."],
  ["not-due", { due: "2046-03-11T16:00:00Z", attempt: 1 }, "It is due Sun 11 Mar 2046."],
  ["not-due", { due: "2029-12-31T23:00:00Z", attempt: 1 }, "It is due now."],
  ["task-paused", { paused: { until: null } }, "Its task is paused."],
  ["task-paused", { paused: { until: "2030-01-02T06:00:00Z" } }, "Its task is paused until Wed 2 Jan 2030 06:00."],
  ["overlap", { overlap: { limit: 1 } }, "Its task has at most 1 run under way at once."],
  [
    "limit-key",
    { limit: { perKey: 2, perWorker: null }, key: "eu" },
    "At most 2 runs with the key eu are under way at once.",
  ],
  ["limit-worker", { limit: { perKey: null, perWorker: 3 } }, "Each worker has at most 3 runs of its task."],
  ["rate", { rate: { limit: 10, perMs: 60_000 } }, "Its task starts at most 10 runs in 1 min."],
  ["group-limit", { group: "gpu", limit: 4, claimed: 4 }, "Its group gpu has a limit of 4 runs, and is at it."],
  ["no-worker", { group: "gpu", workers: 0 }, "No worker serves its group gpu."],
  ["not-started", { node: "atlas" }, "atlas has taken it, and has not reported its start."],
  ["code-of-a-newer-server", {}, "as the server says"],
])("the reason %s is a sentence with its figures", (code, shown, expected) => {
  expect(said(code, shown)).toBe(expected);
});

test("every code of a run that waits has a text in both languages", () => {
  const docs = readFileSync(new URL("../../../../docs/reference/mcp.md", import.meta.url), "utf8");
  const rows = docs.split("\n").filter((row) => /^\| (?:waits for|is with a worker)/.test(row));
  const codes = rows.flatMap((row) => [...row.matchAll(/`([a-z-]+)`/g)].map(([, code]) => code as string));
  expect(codes.length).toBeGreaterThan(20);
  const messages = codes.filter((code) => code !== "running").map((code) => `why.${code.replaceAll("-", "_")}`);
  for (const catalogue of Object.values(catalogues))
    expect(messages.filter((message) => !catalogue[message as Message])).toEqual([]);
});
