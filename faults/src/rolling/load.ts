/** The tasks that every process defines: the interval of each one's slots. */
export const everyMs = { beat: 100, serial: 200, fork: 500, far: 250 };
/** For a run of `fork`. */
export const childrenEach = 3;
