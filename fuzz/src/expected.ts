/** Checks the results of invalid input: the code under test may return a value, or throw an error that it throws on purpose. */
import { CarillonError, errorCodes } from "../../scheduler/src/base/errors.ts";
import { limits } from "../../scheduler/src/base/limits.ts";
import { ZooKeeperError } from "../../zookeeper/src/base/errors.ts";

/** The longest allowed error message or hint, in characters, because a message may quote the refused input. */
const longestMessage = limits.errorTextLength;

/** Thrown when a property does not hold; distinct from the errors that the code under test throws on purpose. */
export class Broken extends Error {
  override readonly name = "Broken";
}

/** @throws Broken if the condition is false */
export function hold(condition: boolean, what: () => string): asserts condition {
  if (!condition) throw new Broken(what());
}

/**
 * Runs `work`. @returns its value; undefined if it throws an intended error
 * @throws any other error; Broken if an intended error has no valid code or message
 */
export function expect<T>(work: () => T): { value: T } | undefined {
  try {
    return { value: work() };
  } catch (error) {
    check(error);
    return undefined;
  }
}

export async function expectLater<T>(work: () => Promise<T>): Promise<{ value: T } | undefined> {
  try {
    return { value: await work() };
  } catch (error) {
    check(error);
    return undefined;
  }
}

export function check(error: unknown): void {
  const meant = error instanceof CarillonError || error instanceof ZooKeeperError;
  if (!meant) throw error;
  if (error instanceof CarillonError)
    hold(Object.hasOwn(errorCodes, error.code), () => `the code ${error.code} is not in the list`);
  hold(error.message.length > 0, () => `${error.code} has no message`);
  hold(error.message.length <= longestMessage && error.hint.length <= longestMessage, () => {
    const { code, message, hint } = error;
    return `${code} has a message of ${message.length} and a hint of ${hint.length} characters: ${message.slice(0, 200)}…`;
  });
}

/**
 * Checks that two values are equal as JSON; the order of keys does not matter. Values that are nested too deeply are not compared.
 * @throws Broken if they differ
 */
export function same(a: unknown, b: unknown, what: string): void {
  let left: string;
  let right: string;
  try {
    [left, right] = [sorted(a), sorted(b)];
  } catch (error) {
    // The value is nested too deeply to be compared. The code that reads it must limit the depth, which another target tests.
    if (error instanceof RangeError) return;
    throw error;
  }
  hold(left === right, () => `${what}:\n  ${left.slice(0, 1_500)}\n  ${right.slice(0, 1_500)}`);
}

const sorted = (value: unknown): string =>
  JSON.stringify(value, (_, part: unknown) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  ) ?? "undefined";
