/** What every process defines: slots every so often. */
export const everyMs = { beat: 100, serial: 200, fork: 500, far: 250 };
/** Of a run of `fork`. */
export const childrenEach = 3;
