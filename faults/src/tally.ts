import type { History, Violation } from "../../simulation/src/history.ts";
import type { Coordination } from "./coordination.ts";
import { nameOf, type Strike } from "./episode.ts";
import { type Figures, figuresOf } from "./report.ts";
import type { Turn } from "./turns.ts";

/** A strike (one fault, or several at the same time) that was inflicted. */
interface Struck {
  readonly coordination: Coordination;
  readonly strike: string;
  readonly round: number;
  /** The ms until the cluster had recovered; undefined if it did not recover. */
  readonly tookMs: number | undefined;
}

interface Broken extends Violation {
  readonly coordination: Coordination;
  readonly seed: number;
  readonly strikes: readonly string[];
}

/**
 * The strikes and their results. A strike counts only once the history of its cluster has been checked. Strikes that an interruption left
 * unchecked are counted separately.
 */
export class Tally {
  readonly #turns: readonly Turn[];
  readonly #struck: Struck[] = [];
  readonly #broken: Broken[] = [];
  readonly #sums: Figures = { runs: 0, executions: 0, slots: 0, operations: 0, overlapped: 0 };
  #unchecked: Struck[] = [];

  constructor(turns: readonly Turn[]) {
    this.#turns = turns;
  }

  get violations(): number {
    return this.#broken.length;
  }

  struck({ coordination, round }: Turn, strike: Strike, tookMs: number | undefined): void {
    this.#unchecked.push({ coordination, round, strike: nameOf(strike), tookMs });
  }

  /** Called when a history has been checked. All strikes since the last call belong to this history. */
  checked(history: History): void {
    this.#struck.push(...this.#unchecked);
    this.#unchecked = [];
    for (const [name, count] of Object.entries(figuresOf(history))) this.#sums[name as keyof Figures] += count;
  }

  broke(violation: Violation, { coordination }: Turn, seed: number, strikes: readonly Strike[]): void {
    this.#broken.push({ ...violation, coordination, seed, strikes: strikes.map(nameOf) });
  }

  line() {
    const coordinations = [...new Set(this.#turns.map(({ coordination }) => coordination))];
    const planned = this.#turns.reduce((sum, { strikes }) => sum + strikes.length, 0);
    const broken = this.#broken;
    return {
      coordinations,
      // The number of rounds that are complete with every coordination.
      rounds: this.#wholeRounds(),
      ...this.#figures(this.#struck),
      faults: new Set(this.#struck.flatMap(({ strike }) => strike.split("+"))).size,
      pairs: this.#struck.filter(({ strike }) => strike.includes("+")).length,
      unchecked: this.#unchecked.length,
      not_run: planned - this.#struck.length - this.#unchecked.length,
      violations: broken.length,
      by_coordination: Object.fromEntries(
        coordinations.map((name) => [
          name,
          {
            ...this.#figures(this.#struck.filter(({ coordination }) => coordination === name)),
            violations: broken.filter(({ coordination }) => coordination === name).length,
          },
        ]),
      ),
      ...this.#sums,
      ...(broken.length > 0 ? { broken } : {}),
    };
  }

  #figures(struck: readonly Struck[]) {
    const took = struck.flatMap(({ tookMs }) => (tookMs === undefined ? [] : [tookMs])).sort((a, b) => a - b);
    return {
      strikes: struck.length,
      recovery_ms_median: Math.round(took[Math.floor(took.length / 2)] ?? 0),
      recovery_ms_max: Math.round(took.at(-1) ?? 0),
      not_recovered: struck.length - took.length,
    };
  }

  #wholeRounds(): number {
    let whole = 0;
    const done = ({ coordination, round, strikes }: Turn) =>
      this.#struck.filter((one) => one.coordination === coordination && one.round === round).length === strikes.length;
    const alone = this.#turns.filter(({ pairs }) => !pairs);
    for (let round = 1; alone.some((turn) => turn.round === round); round++)
      if (alone.filter((turn) => turn.round === round).every(done)) whole++;
    return whole;
  }
}
