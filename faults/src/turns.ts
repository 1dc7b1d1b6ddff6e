import { Dice } from "../../simulation/src/plan/dice.ts";
import type { Coordination } from "./coordination.ts";
import type { Strike } from "./episode.ts";
import { allFaults, faultsFor } from "./faults/all.ts";
import type { Fault } from "./faults/fault.ts";

/** A sequence of strikes that share the same servers. */
export interface Turn {
  readonly coordination: Coordination;
  /** Rounds are numbered from 1; the turn with pairs has the number after the last round. */
  readonly round: number;
  readonly pairs: boolean;
  readonly seed: number;
  readonly strikes: readonly Strike[];
}

export interface Asked {
  /** The faults to inflict, where A+B means several at the same time; empty: every fault. */
  readonly named: readonly string[];
  readonly coordinations: readonly Coordination[];
  readonly rounds: number;
  /** Number of random pairs with each coordination; default: half the number of single faults. No pairs if `named` is not empty. */
  readonly pairs: number | undefined;
  readonly seed: number;
}

/** The distance between the seeds of two rounds; larger than the number of strikes in a turn, so that no seed is used twice. */
const seedsEach = 1_000;

/**
 * Plans the turns: round by round, each with every coordination, so that an interruption leaves the coordinations about equally tested.
 * The result depends only on the arguments.
 */
export function turnsOf({ named, coordinations, rounds, pairs, seed }: Asked): Turn[] {
  const turns: Turn[] = [];
  for (let round = 1; round <= rounds + 1; round++) {
    for (const coordination of coordinations) {
      const own = seed + seedsEach * (round - 1);
      const turn = { coordination, round, seed: own, pairs: round > rounds };
      const dice = new Dice(own);
      const known = faultsFor(coordination);
      const byChance = named.length > 0 ? 0 : (pairs ?? Math.ceil((known.length * rounds) / 2));
      if (turn.pairs) turns.push({ ...turn, strikes: paired(known, byChance, dice) });
      else turns.push({ ...turn, strikes: named.length > 0 ? these(named, known) : alone(known, dice) });
    }
  }
  return turns.filter(({ strikes }) => strikes.length > 0);
}

/**
 * Returns the named strikes whose faults are all possible with this coordination; the other strikes belong to other
 * coordinations.
 */
function these(named: readonly string[], known: readonly Fault[]): Strike[] {
  const strikes = named.map((text) => text.split("+").map((name) => faultNamed(name)));
  return strikes.filter((strike) => strike.every((fault) => known.includes(fault)));
}

function alone(known: readonly Fault[], dice: Dice): Strike[] {
  return known
    .map((fault) => ({ fault, at: dice.between(0, 1) }))
    .sort((a, b) => a.at - b.at)
    .map(({ fault }) => [fault]);
}

function paired(known: readonly Fault[], count: number, dice: Dice): Strike[] {
  return Array.from({ length: count }, () => {
    const first = dice.one(known);
    return [first, dice.one(known.filter((other) => other !== first))];
  });
}

function faultNamed(name: string): Fault {
  const found = allFaults.find((fault) => fault.name === name);
  if (!found) throw new Error(`there is no fault ${name}; --list names them`);
  return found;
}
