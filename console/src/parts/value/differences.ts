/** One difference between two JSON values, with its path: `schedule.expression`. */
export interface Difference {
  /** The path of the part; "" for the whole value. */
  part: string;
  /** The old value, or the items removed from a list of plain values; undefined if there was no value or no item was removed. */
  was: unknown;
  is: unknown;
}

const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isFlat = (value: unknown): value is unknown[] =>
  Array.isArray(value) && value.every((one) => typeof one !== "object" || one === null);

/**
 * The differences between two JSON values. For lists of plain values, a difference contains the removed and the added items, or the
 * whole lists if only order or repetitions differ.
 */
export function differences(was: unknown, is: unknown, part = ""): Difference[] {
  if (JSON.stringify(was) === JSON.stringify(is)) return [];
  if (isPlain(was) && isPlain(is)) {
    const names = [...new Set([...Object.keys(was), ...Object.keys(is)])];
    return names.flatMap((name) => differences(was[name], is[name], part === "" ? name : `${part}.${name}`));
  }
  if (isFlat(was) && isFlat(is)) {
    const [before, after] = [new Set(was), new Set(is)];
    const gone = was.filter((one) => !after.has(one));
    const come = is.filter((one) => !before.has(one));
    // Both lists contain the same values, in another order or with other repetitions, so the whole lists are returned.
    if (gone.length === 0 && come.length === 0) return [{ part, was, is }];
    return [{ part, was: gone.length === 0 ? undefined : gone, is: come.length === 0 ? undefined : come }];
  }
  return [{ part, was, is }];
}
