import { expect } from "vitest";
import { StallMeter } from "../support/stall-meter.ts";
import { stopBound } from "../support/stop-bound.ts";
import { hold } from "../support/timing.ts";

/** How long a stop may take beyond `drain`, in ms (docs/tasks/limits.md). */
const beyondMs = 500;

let stalls = new StallMeter();
stopBound.look = (ms, drainMs) => {
  const mostMs = drainMs + beyondMs + 3 * stalls.stop();
  stalls = new StallMeter();
  hold(`stop: ${expect.getState().currentTestName}`, { ms, mostMs });
};
await import("../conformance/stops.test.ts");
