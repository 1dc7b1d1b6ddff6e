/**
 * `timing/stops.test.ts` sets `look` to measure how long the stops in `conformance/stops.test.ts` take. Without `look`, the tests
 * in that file only check that each stop ends.
 */
export const stopBound: { look?: (ms: number, drainMs: number) => void } = {};
