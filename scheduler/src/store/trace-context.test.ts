import { expect, it } from "vitest";
import { traceOf, traceparentOf } from "./trace-context.ts";

const [trace, span] = ["0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"];

it("a traceparent is passed on, and a later version as version 00; an invalid one is ignored", () => {
  expect(traceparentOf(`00-${trace}-${span}-01`)).toBe(`00-${trace}-${span}-01`);
  expect(traceparentOf(`01-${trace}-${span}-00-more`)).toBe(`00-${trace}-${span}-00`);
  const wrong = [
    "",
    "00",
    `00-${trace}-${span}`,
    `ff-${trace}-${span}-01`,
    `00-${trace.toUpperCase()}-${span}-01`,
    `00-${"0".repeat(32)}-${span}-01`,
    `00-${trace}-${"0".repeat(16)}-01`,
    `00-${trace}-${span}-01x`,
  ];
  for (const text of [...wrong, undefined, [`00-${trace}-${span}-01`]]) expect(traceparentOf(text)).toBe(undefined);
});

it("a single origin within a minute is the parent; later, separate or several origins are links", () => {
  const origin = (more: object = {}) => ({ runId: 1, context: "a", createdMs: 0, apart: false, ...more });
  expect(traceOf([origin()], 60_000)).toEqual({ parent: "a", links: [] });
  expect(traceOf([origin()], 60_001)).toEqual({ parent: null, links: ["a"] });
  expect(traceOf([origin({ apart: true })], 0)).toEqual({ parent: null, links: ["a"] });
  expect(traceOf([origin(), origin({ context: "b" })], 0)).toEqual({ parent: null, links: ["a", "b"] });
});
