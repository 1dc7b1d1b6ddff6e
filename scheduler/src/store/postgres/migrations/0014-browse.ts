/**
 * Indexes for lists of runs of any length, newest first. `run_history_outcome` finds the last ended and the last failed runs, for which the
 * newest day would otherwise be sorted. It is the only additional index that a successful run costs; the times of ends rise, so each new
 * entry goes to the rightmost page. A separate index without successes finds the failures of one task among millions of successes. Claimed
 * and ready runs have indexes already. The other live runs, which are held, paused or undecided, get their own index.
 */
export const browse = (s: string) => `
create index run_history_outcome on ${s}.run_history (outcome, ended_ms, id);
create index run_history_trouble on ${s}.run_history (task_id, outcome, ended_ms, id) where outcome <> 0;
create index run_aside on ${s}.run (due_ms, id) where state in (0, 1, 4);
`;
