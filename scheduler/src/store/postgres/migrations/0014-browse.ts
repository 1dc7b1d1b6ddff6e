/**
 * Indexes for lists of runs of any length, newest first. Without `run_history_outcome`, a query for the last ended or the last failed
 * runs would sort all runs of the newest day. Each ended run adds one entry to this index. The times of ends rise, so the entry goes to
 * the end of the entries with the same outcome. `run_history_trouble` leaves out successes, so that the failures of one task are found
 * among millions of successes. Claimed and ready runs have indexes already; `run_aside` indexes the other live runs (held, paused,
 * undecided).
 */
export const browse = (s: string) => `
create index run_history_outcome on ${s}.run_history (outcome, ended_ms, id);
create index run_history_trouble on ${s}.run_history (task_id, outcome, ended_ms, id) where outcome <> 0;
create index run_aside on ${s}.run (due_ms, id) where state in (0, 1, 4);
`;
