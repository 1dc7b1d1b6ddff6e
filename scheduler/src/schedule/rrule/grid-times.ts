/**
 * Times of a rule that repeats every n-th hour, minute or second since the start, where the rule allows them. The search jumps over days,
 * hours and minutes that the rule excludes.
 */
import { firstDay, type LocalTimes, lastDay, lowerBound, mod } from "../local-times.ts";

export interface Grid {
  /** The length of an hour, a minute or a second, in seconds. */
  unitSeconds: number;
  count: number;
  /** The number of any unit that has times; units are counted from 1970. */
  origin: number;
  matches: (day: number) => boolean;
  /** The hours with times; null: all. */
  hours: readonly number[] | null;
  minutes: readonly number[] | null;
  seconds: readonly number[] | null;
  /** Seconds within a unit, ascending. */
  offsets: readonly number[];
}

export class GridTimes implements LocalTimes {
  readonly #grid: Grid;
  readonly #unitsOfDay: number;
  readonly #isEmpty: boolean;

  constructor(grid: Grid) {
    this.#grid = grid;
    this.#unitsOfDay = 86_400 / grid.unitSeconds;
    this.#isEmpty = grid.offsets.length === 0 || !this.#meets();
  }

  nextLocal(local: number): number {
    const { unitSeconds, count, offsets, matches } = this.#grid;
    if (this.#isEmpty) return Number.POSITIVE_INFINITY;
    let unit = this.#up(Math.floor(local / 1000 / unitSeconds));
    for (;;) {
      const day = Math.floor(unit / this.#unitsOfDay);
      if (day > lastDay) return Number.POSITIVE_INFINITY;
      const tomorrow = (day + 1) * this.#unitsOfDay;
      if (matches(day))
        while (unit < tomorrow) {
          const refused = this.#refusing(unit - day * this.#unitsOfDay);
          if (refused > 1) unit = this.#up((Math.floor((unit * unitSeconds) / refused) + 1) * (refused / unitSeconds));
          else {
            const offset = offsets[lowerBound(offsets, local / 1000 - unit * unitSeconds)];
            if (refused === 0 && offset !== undefined) return (unit * unitSeconds + offset) * 1000;
            unit += count;
          }
        }
      unit = Math.max(unit, this.#up(tomorrow));
    }
  }

  previousLocal(local: number): number {
    const { unitSeconds, count, offsets, matches } = this.#grid;
    if (this.#isEmpty) return Number.NEGATIVE_INFINITY;
    let unit = this.#down(Math.floor(local / 1000 / unitSeconds));
    for (;;) {
      const day = Math.floor(unit / this.#unitsOfDay);
      if (day < firstDay) return Number.NEGATIVE_INFINITY;
      const today = day * this.#unitsOfDay;
      if (matches(day))
        while (unit >= today) {
          const refused = this.#refusing(unit - today);
          if (refused > 1) unit = this.#down(Math.floor((unit * unitSeconds) / refused) * (refused / unitSeconds) - 1);
          else {
            const offset = offsets[lowerBound(offsets, local / 1000 - unit * unitSeconds + 1) - 1];
            if (refused === 0 && offset !== undefined) return (unit * unitSeconds + offset) * 1000;
            unit -= count;
          }
        }
      unit = Math.min(unit, this.#down(today - 1));
    }
  }

  readonly #up = (unit: number) => unit + mod(this.#grid.origin - unit, this.#grid.count);
  readonly #down = (unit: number) => unit - mod(unit - this.#grid.origin, this.#grid.count);

  /**
   * Returns the length, in seconds, of the span around a unit that the rule excludes: its hour, its minute, or 1 for the unit alone; 0: the
   * rule allows the unit.
   */
  #refusing(unitOfDay: number): number {
    const { unitSeconds, hours, minutes, seconds } = this.#grid;
    const second = unitOfDay * unitSeconds;
    if (hours !== null && !hours.includes(Math.floor(second / 3600))) return unitSeconds === 3600 ? 1 : 3600;
    if (minutes !== null && !minutes.includes(Math.floor(second / 60) % 60)) return unitSeconds === 60 ? 1 : 60;
    return seconds !== null && !seconds.includes(second % 60) ? 1 : 0;
  }

  /**
   * Returns whether the rule can match at all. Without this check, a rule such as every second minute, but only in odd minutes, would be
   * searched for up to the last year.
   */
  #meets(): boolean {
    const { count, origin } = this.#grid;
    // From day to day the grid shifts by multiples of this number.
    const step = greatestDivisor(count, this.#unitsOfDay);
    for (let unit = mod(origin, step); unit < this.#unitsOfDay; unit += step)
      if (this.#refusing(unit) === 0) return true;
    return false;
  }
}

const greatestDivisor = (a: number, b: number): number => (b === 0 ? a : greatestDivisor(b, a % b));
