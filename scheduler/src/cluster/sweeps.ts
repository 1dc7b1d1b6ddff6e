/** The leader's sweeps about which a heartbeat can report whether the store contains something for them. See engine/janitor.ts. */
export const sweeps = [
  "changedTasks",
  "expiredRuns",
  "knownKeys",
  "auditRows",
  "workerKeys",
  "endedTasks",
  "sessions",
  "counters",
  "historySizes",
  "releases",
] as const;

export type Sweep = (typeof sweeps)[number];

/**
 * The longest expected duration, in ms, of a transaction in which an application enqueues runs. A change of a task does not see a run that
 * such an open transaction has inserted; the leader searches for such runs.
 */
export const enqueuingMs = 600_000;
/**
 * The leader searches after changes that are up to this old, in ms. This is longer than `enqueuingMs`, because the search is made once a
 * minute, and later if the leader changes or the store is away.
 */
export const changesSweptMs = enqueuingMs + 300_000;
