/**
 * Indexes for lists of runs, newest first, of any length. `run_history_outcome` answers "what ended last" and "what failed last", for which
 * the newest day would be sorted otherwise. It is the only further index that a successful run pays for; ends come in rising order, so each
 * goes to the rightmost page. The failures of one task among millions of successes have an index without successes. Claimed and ready runs
 * have indexes already. The other live runs, which wait for a place, for their task or for a decision, get an index of their own.
 */
export const browse = (s: string) => `
create index run_history_outcome on ${s}.run_history (outcome, ended_ms, id);
create index run_history_trouble on ${s}.run_history (task_id, outcome, ended_ms, id) where outcome <> 0;
create index run_aside on ${s}.run (due_ms, id) where state in (0, 1, 4);
`;
