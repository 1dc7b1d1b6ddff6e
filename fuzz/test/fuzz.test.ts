import { describe, expect, it } from "vitest";
import { feed } from "../src/campaign.ts";
import { targets } from "../src/targets.ts";

/** The seed is fixed, so each run feeds the same inputs. `npm run prove -- fuzz` feeds a million inputs with a new seed each time. */
const inputs = process.env.CARILLON_TEST_LONG === "1" ? 20_000 : 6_000;
const seed = 7;
const whole = targets.reduce((sum, { share }) => sum + share, 0);

describe("foreign input is read, or refused with a documented error", () => {
  it.each(targets.map((target) => [target.name, target] as const))("%s", async (_, target) => {
    const fed = await feed(target, { seed, inputs: Math.ceil((inputs * target.share) / whole) });
    expect(fed.found).toEqual([]);
  });
});
