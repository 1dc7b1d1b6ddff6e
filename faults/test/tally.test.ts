import { expect, it } from "vitest";
import type { History } from "../../simulation/src/history.ts";
import { coordinations } from "../src/coordination.ts";
import { nameOf } from "../src/episode.ts";
import { faultsFor } from "../src/faults/all.ts";
import { Tally } from "../src/tally.ts";
import { turnsOf } from "../src/turns.ts";

const asked = { named: [], coordinations, rounds: 3, pairs: 2, seed: 7 };
const history = { executions: [], operations: [], dump: { run: [], run_history: [], slot: [] } };
const checked = (tally: Tally) => tally.checked(history as unknown as History);

it("plays each fault alone with each coordination in each round, with separate seeds, and then pairs of faults", () => {
  const turns = turnsOf(asked);
  expect(turns.map(({ coordination, round, seed }) => `${coordination} ${round} ${seed}`)).toEqual([
    ...[1, 2, 3, 4].flatMap((round) => coordinations.map((name) => `${name} ${round} ${7 + 1_000 * (round - 1)}`)),
  ]);
  for (const { coordination, strikes, pairs } of turns) {
    const names = strikes.map(nameOf);
    if (pairs) expect(names).toEqual([expect.stringContaining("+"), expect.stringContaining("+")]);
    else
      expect([...names].sort()).toEqual(
        faultsFor(coordination)
          .map(({ name }) => name)
          .sort(),
      );
  }
  expect(turnsOf(asked)).toEqual(turns);
});

it("reports for an interrupted run which faults were played, not checked and not run", () => {
  const turns = turnsOf({ ...asked, named: ["liar", "leader-killed+store-cut"], rounds: 2 });
  const tally = new Tally(turns);
  for (const turn of turns.slice(0, 4)) {
    for (const strike of turn.strikes) tally.struck(turn, strike, turn.coordination === "redis" ? 40 : 20);
    checked(tally);
  }
  const [turn] = turns.slice(4);
  if (!turn) throw new Error("there are six turns");
  tally.struck(turn, turn.strikes[0] ?? [], 90);
  expect(tally.line()).toMatchObject({
    rounds: 1,
    strikes: 8,
    unchecked: 1,
    not_run: 3,
    violations: 0,
    recovery_ms_max: 40,
    faults: 3,
    pairs: 4,
    by_coordination: {
      postgres: { strikes: 4, recovery_ms_max: 20 },
      redis: { strikes: 2 },
      zookeeper: { strikes: 2 },
    },
  });
  tally.broke({ invariant: "16", what: "it did not recover" }, turn, turn.seed, turn.strikes);
  checked(tally);
  expect(tally.line()).toMatchObject({ strikes: 9, unchecked: 0, recovery_ms_max: 90 });
  expect(tally.line().by_coordination.redis).toMatchObject({ strikes: 3, violations: 1 });
});
