import type { Violation } from "../history.ts";

const mostTries = 80;

/** A plan that consists of acts. */
interface Acting {
  readonly acts: readonly unknown[];
}

/** Returns the plan with only the acts at these indices. */
export const only = <Plan extends Acting>(plan: Plan, places: readonly number[]): Plan => ({
  ...plan,
  acts: plan.acts.filter((_, i) => places.includes(i)),
});

/**
 * Removes acts while the remaining ones still violate the same invariant: first half of them at a time, then a quarter, and so on, with
 * at most `mostTries` plays.
 * @returns the indices of the remaining acts
 */
export async function shrink<Plan extends Acting>(
  plan: Plan,
  violation: Violation,
  play: (plan: Plan) => Promise<{ violation: Violation | undefined }>,
): Promise<number[]> {
  let left = plan.acts.map((_, i) => i);
  let tries = 0;
  for (let size = Math.ceil(left.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = 0; from < left.length && tries < mostTries; ) {
      const fewer = [...left.slice(0, from), ...left.slice(from + size)];
      tries++;
      const { violation: still } = await play(only(plan, fewer));
      if (still?.invariant === violation.invariant) left = fewer;
      else from += size;
    }
  }
  return left;
}
