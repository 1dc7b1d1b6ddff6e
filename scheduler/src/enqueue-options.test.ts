import { expect, it } from "vitest";
import { checkEnqueueOptions } from "./enqueue-options.ts";

const refused = expect.objectContaining({ code: "OPTION_INVALID" });

it.each([{ key: "a\0b" }, { limitKey: "a\0b" }, { key: "" }, { key: "k".repeat(201) }, { keys: "a" }])(
  "an enqueue with %o is refused before the store is asked",
  (options) => {
    expect(() => checkEnqueueOptions(options)).toThrow(refused);
  },
);
