/** The interval of each task's slots in ms; every process defines these tasks. */
export const everyMs = { beat: 100, serial: 200, fork: 500, far: 250 };
/** The number of child runs that each run of `fork` spawns. */
export const childrenEach = 3;
