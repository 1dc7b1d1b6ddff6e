import { expect, it } from "vitest";
import { accountOf, type Expected, type Seen, type Stored } from "../src/rolling/seen.ts";

const expected: Expected = {
  every: { beat: 100 },
  fromMs: 0,
  untilMs: 1_350,
  serial: ["beat"],
  children: { joined: 3 },
  missed: 0,
};
/** Three slots, the last of which the new version executes, and a run that the old version enqueues and the new version executes. */
function good(): { seen: Seen[]; stored: Stored[] } {
  const seen: Seen[] = [];
  const stored: Stored[] = [];
  const run = (run: number, task: string, slotMs: number | null, by: "old" | "new") => {
    const atMs = (slotMs ?? 1_350) + 1;
    seen.push(
      { kind: "began", atMs, by, node: by, task, run, attempt: 1, slotMs },
      { kind: "ended", atMs, by, task, run },
    );
    stored.push({ run, task, slotMs, succeeded: true, attempt: 1 });
  };
  for (const n of [1, 2, 3]) run(n, "beat", 1_000 + n * 100, n < 3 ? "old" : "new");
  seen.push({ kind: "enqueued", atMs: 1_350, by: "old", run: 4 });
  run(4, "work", null, "new");
  seen.push({ kind: "exit", atMs: 1_400, by: "old", node: "old", how: "SIGTERM" });
  return { seen, stored };
}

it("a correct history has no findings, and its figures are counted", () => {
  const { seen, stored } = good();
  const { figures, wrong } = accountOf(seen, stored, expected);
  expect(wrong).toEqual([]);
  expect(figures).toMatchObject({
    slots_due: 3,
    fired: 3,
    lost: 0,
    doubled: 0,
    enqueued: 1,
    enqueued_lost: 0,
    old_to_new: 1,
    new_to_old: 0,
    ran_old: 2,
    ran_new: 2,
    retried: 0,
    overlapped: 0,
    late_max_ms: 1,
    errors: 0,
  });
});

it.each<[string, (all: ReturnType<typeof good>) => unknown, RegExp]>([
  ["a slot without a run", ({ seen, stored }) => [seen.splice(2, 2), stored.splice(1, 1)], /has no run of/],
  ["a slot with two", ({ stored }) => stored.push({ ...(stored[0] as Stored), run: 9 }), /two runs/],
  ["one that began twice", ({ seen }) => seen.splice(2, 0, seen[0] as Seen), /began 2 times/],
  ["one that never began", ({ seen }) => seen.splice(2, 2), /never began/],
  ["one that has not ended", ({ stored }) => stored.splice(3, 1), /has not ended|never ended/],
  [
    "one that failed",
    ({ stored }) => stored.splice(0, 1, { ...(stored[0] as Stored), succeeded: false }),
    /not succeed/,
  ],
  ["an acknowledged one that is gone", ({ seen, stored }) => [seen.splice(7, 2), stored.pop()], /acknowledged to old/],
  ["two at once of a serial task", ({ seen }) => seen.splice(1, 2, seen[2] as Seen, seen[1] as Seen), /at once/],
  [
    "a join that saw too few",
    ({ seen }) => seen.splice(8, 1, { ...(seen[8] as Seen & { kind: "ended" }), task: "joined", inputs: 2 }),
    /joined 2/,
  ],
  [
    "an error in a log",
    ({ seen }) => seen.push({ kind: "said", atMs: 1, by: "old", node: "a", level: "error", message: "no", fields: {} }),
    /no \{\}/,
  ],
  [
    "a process that fell",
    ({ seen }) => seen.push({ kind: "exit", atMs: 1, by: "old", node: "a", how: "1" }),
    /ended by 1/,
  ],
])("%s is detected", (_, spoil, words) => {
  const all = good();
  spoil(all);
  expect(accountOf(all.seen, all.stored, expected).wrong.join("\n")).toMatch(words);
});
