/**
 * The local times of a rule that repeats every n hours, minutes or seconds from its start, restricted by the other parts of the
 * rule. The search skips days, hours and minutes that the rule excludes.
 */
import { firstDay, type LocalTimes, lastDay, lowerBound, mod } from "../local-times.ts";

export interface Grid {
  /** The length of the unit (an hour, a minute or a second) in seconds. */
  unitSeconds: number;
  count: number;
  /** The number of one unit that has times, counted in units from 1970-01-01; any such unit will do. */
  origin: number;
  matches: (day: number) => boolean;
  /** The permitted hours; null: all. */
  hours: readonly number[] | null;
  minutes: readonly number[] | null;
  seconds: readonly number[] | null;
  /** The seconds within a unit at which it has times, ascending. */
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
   * Returns the length in seconds of the excluded hour or minute that contains a unit. Returns 1 if only the unit itself is
   * excluded, and 0 if the rule permits the unit.
   */
  #refusing(unitOfDay: number): number {
    const { unitSeconds, hours, minutes, seconds } = this.#grid;
    const second = unitOfDay * unitSeconds;
    if (hours !== null && !hours.includes(Math.floor(second / 3600))) return unitSeconds === 3600 ? 1 : 3600;
    if (minutes !== null && !minutes.includes(Math.floor(second / 60) % 60)) return unitSeconds === 60 ? 1 : 60;
    return seconds !== null && !seconds.includes(second % 60) ? 1 : 0;
  }

  /**
   * Returns true if the rule can match on some day. Without this check, a rule such as every second minute but only in odd minutes would be
   * searched for up to the last supported year.
   */
  #meets(): boolean {
    const { count, origin } = this.#grid;
    // From one day to the next, the permitted units shift by a multiple of this number, so testing steps of it covers every day.
    const step = greatestDivisor(count, this.#unitsOfDay);
    for (let unit = mod(origin, step); unit < this.#unitsOfDay; unit += step)
      if (this.#refusing(unit) === 0) return true;
    return false;
  }
}

const greatestDivisor = (a: number, b: number): number => (b === 0 ? a : greatestDivisor(b, a % b));
