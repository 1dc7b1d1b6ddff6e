/** The allowed results of bad input: a value, or an intended error. */
import { CarillonError, errorCodes } from "../../scheduler/src/base/errors.ts";
import { limits } from "../../scheduler/src/base/limits.ts";
import { ZooKeeperError } from "../../zookeeper/src/base/errors.ts";

/** The longest allowed message; it may quote part of the refused input. */
const longestMessage = limits.errorTextLength;

/** Differs from an intended error: a property does not hold. */
export class Broken extends Error {
  override readonly name = "Broken";
}

/** @throws Broken */
export function hold(condition: boolean, what: () => string): asserts condition {
  if (!condition) throw new Broken(what());
}

/** @returns undefined for an intended error @throws any other error, and one with an unsuitable message */
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

/** Equal as JSON, whatever the order of names. */
export function same(a: unknown, b: unknown, what: string): void {
  let left: string;
  let right: string;
  try {
    [left, right] = [sorted(a), sorted(b)];
  } catch (error) {
    // Too deep to be compared here: its reader must bound the depth, and another target tests that.
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
