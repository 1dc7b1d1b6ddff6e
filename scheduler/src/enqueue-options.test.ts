import { expect, it } from "vitest";
import { checkEnqueueOptions, dueOfEnqueue } from "./enqueue-options.ts";

const refused = expect.objectContaining({ code: "OPTION_INVALID" });

it.each([{ key: "a\0b" }, { limitKey: "a\0b" }, { key: "" }, { key: "k".repeat(201) }, { keys: "a" }])(
  "an enqueue with %o is refused before the store is asked",
  (options) => {
    expect(() => checkEnqueueOptions(options)).toThrow(refused);
  },
);

it("a time is one that a Date can hold", () => {
  for (const at of [1e300, -1e300, Number.NaN, new Date(Number.NaN)])
    expect(() => dueOfEnqueue({ at }, 0)).toThrow(refused);
  expect(dueOfEnqueue({ at: 8.64e15 }, 0)).toBe(8.64e15);
});
