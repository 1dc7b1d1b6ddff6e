import type { Checker } from "../history.ts";

const roundingMs = 1;

/** Checks that no run starts before its time, both by its process's estimate of the store's time and by the store's own clock. */
export const notEarly: Checker = {
  invariant: "4, 6: nothing starts before its time",
  check({ executions, clockErrorMs }) {
    for (const { run, dueMs, believedMs, startStoreMs, startMs } of executions) {
      if (believedMs < dueMs - roundingMs)
        return {
          what: `started ${Math.round(dueMs - believedMs)} ms early by its worker's own time`,
          run,
          atMs: startMs,
        };
      if (startStoreMs < dueMs - clockErrorMs - roundingMs)
        return {
          what: `started ${Math.round(dueMs - startStoreMs)} ms early by the store's clock`,
          run,
          atMs: startMs,
        };
    }
    return undefined;
  },
};
