/** What differs between two values of JSON, by its place: `schedule.expression`. */
export interface Difference {
  /** Empty: the whole. */
  part: string;
  /** undefined: it was not there. */
  was: unknown;
  is: unknown;
}

const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isFlat = (value: unknown): value is unknown[] =>
  Array.isArray(value) && value.every((one) => typeof one !== "object" || one === null);

/** Of lists of plain values what was taken out and what was put in is told, not the whole of them. */
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
    // The same values in another order, or another number of them.
    if (gone.length === 0 && come.length === 0) return [{ part, was, is }];
    return [{ part, was: gone.length === 0 ? undefined : gone, is: come.length === 0 ? undefined : come }];
  }
  return [{ part, was, is }];
}
