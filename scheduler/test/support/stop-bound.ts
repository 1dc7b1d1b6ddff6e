/**
 * `timing/stops.test.ts` measures how long stops take, with the scenes of `conformance/stops.test.ts`. The tests themselves only check
 * whether a stop ends.
 */
export const stopBound: { look?: (ms: number, drainMs: number) => void } = {};
