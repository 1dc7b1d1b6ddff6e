/**
 * Who looks at how long stops take: `timing/stops.test.ts`, which plays the scenes of `conformance/stops.test.ts`. The tests themselves
 * only look whether a stop ends.
 */
export const stopBound: { look?: (ms: number, drainMs: number) => void } = {};
