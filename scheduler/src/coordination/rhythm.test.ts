import fc from "fast-check";
import { expect, it } from "vitest";
import { placeOf, untilBeat } from "./rhythm.ts";

const beatMs = 3_500;
const places = fc.double({ min: 0, max: 0.999, noNaN: true });

it("nodes spread their heartbeats evenly over the interval, and workers over its second half", () => {
  expect([11, 12, 15].map((id) => placeOf(id, "node", [12, 15, 11]))).toEqual([0, 1 / 3, 2 / 3]);
  expect(placeOf(7, "node", [])).toBe(0);
  const workers = Array.from({ length: 1_000 }, (_, index) => placeOf(index + 1, "worker", [])).sort((a, b) => a - b);
  expect([(workers[0] as number) >= 0.5, (workers.at(-1) as number) < 1]).toEqual([true, true]);
  expect(Math.max(...workers.slice(1).map((place, index) => place - (workers[index] as number)))).toBeLessThan(0.005);
});

it("reaches its heartbeat phase within three heartbeats, never waits too long, and keeps it despite slow answers", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 1e13 }), places, (start, place) => {
      let storeMs = start;
      for (let beat = 0; beat < 20; beat++) {
        const wait = untilBeat(storeMs, beatMs, place);
        expect(wait).toBeLessThanOrEqual(beatMs);
        expect(wait).toBeGreaterThanOrEqual(0.5 * beatMs);
        storeMs += wait + 3;
        if (beat < 3) continue;
        const off = (((storeMs - place * beatMs) % beatMs) + beatMs) % beatMs;
        expect(Math.min(off, beatMs - off)).toBeLessThanOrEqual(0.05 * beatMs + 3);
        expect(wait, "no beat more than needed").toBeGreaterThan(0.9 * beatMs);
      }
    }),
  );
});
