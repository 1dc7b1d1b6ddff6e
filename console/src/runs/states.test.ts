import { expect, test } from "vitest";
import { actsOf, states } from "./states.ts";

test("a run that has ended can run again, one without a worker is decided, and any other can be cancelled", () => {
  expect(Object.fromEntries(states.map((state) => [state, actsOf({ state }).join()]))).toEqual({
    ready: "cancel",
    claimed: "cancel",
    held: "cancel",
    paused: "cancel",
    undecided: "retry,fail",
    succeeded: "rerun",
    failed: "rerun",
    cancelled: "rerun",
    skipped: "rerun",
  });
});
