import { expect, it } from "vitest";
import { accountOf, type Noted, underWay } from "../src/peers/account.ts";

const none = { never: 0, unfinished: 0, once: 0, more_than_once: 0, early: 0 };
const noneAgain = { after_death: 0, two_at_once: 0, beside_stopped: 0, after_end: 0 };

let n = 0;
/** The log lines of one execution of the only slot, which is due at 1,000 ms; without `endMs` only the line of its start. */
function execution(worker: string, startMs: number, endMs?: number, life = 1): Noted[] {
  n++;
  const start: Noted = { kind: "start", atMs: startMs, worker, life, n, key: "a", forMs: 300 };
  return endMs === undefined ? [start] : [start, { kind: "end", atMs: endMs, worker, life, n }];
}
const death = { worker: "w1", life: 1, atMs: 1_200 };
const still = { worker: "w1", life: 1, atMs: 1_100, untilMs: 9_000 };

const cases: [string, Noted[], { deaths?: (typeof death)[]; stills?: (typeof still)[] }, object][] = [
  ["nobody began", [], {}, { never: 1, latest_start_ms: 0, latest_end_ms: 0 }],
  ["once", execution("w1", 1_005, 1_300), {}, { once: 1, latest_start_ms: 5, latest_end_ms: 300 }],
  ["before its time", execution("w1", 990, 1_300), {}, { once: 1, early: 1 }],
  ["begun by one that died", execution("w1", 1_100), { deaths: [death] }, { unfinished: 1 }],
  [
    "begun by one that died, and by another later",
    [...execution("w1", 1_100), ...execution("w2", 7_000, 7_300)],
    { deaths: [death] },
    { more_than_once: 1, after_death: 1, latest_start_ms: 100, latest_end_ms: 6_300 },
  ],
  [
    "begun before the other died",
    [...execution("w1", 1_100), ...execution("w2", 1_150, 1_450)],
    { deaths: [death] },
    { more_than_once: 1, two_at_once: 1 },
  ],
  [
    "begun beside one that stood still, whose life went on",
    [...execution("w1", 1_050, 9_200), ...execution("w2", 7_000, 7_300)],
    { stills: [still] },
    { more_than_once: 1, two_at_once: 1, beside_stopped: 1 },
  ],
  [
    "begun by one that stood still, beside another",
    [...execution("w2", 8_900, 9_300), ...execution("w1", 9_001, 9_200)],
    { stills: [still] },
    { more_than_once: 1, two_at_once: 1 },
  ],
  [
    "again after its end, though its process died then",
    [...execution("w1", 1_050, 1_190), ...execution("w2", 7_000, 7_300)],
    { deaths: [death] },
    { more_than_once: 1, after_end: 1 },
  ],
  [
    "by the next life of one that died",
    [...execution("w1", 1_100), ...execution("w1", 2_000, 2_300, 2)],
    { deaths: [death] },
    { more_than_once: 1, after_death: 1 },
  ],
];

it.each(cases)("a slot: %s", (_, notes, { deaths = [], stills = [] }, expected) => {
  const figures = accountOf([{ key: "a", dueMs: 1_000 }], notes.toReversed(), deaths, stills);
  expect(figures).toMatchObject({ slots: 1, ...none, ...noneAgain, ...expected });
});

it("a process's running executions are those that it began in its current life and has not ended", () => {
  const notes = [...execution("w1", 1_000, 1_300), ...execution("w1", 1_100), ...execution("w2", 1_100)];
  expect(underWay(notes, { worker: "w1", life: 1 }, 1_150)).toEqual([{ leftMs: 250 }]);
  expect(underWay(notes, { worker: "w1", life: 2 }, 1_150)).toEqual([]);
});
