/**
 * What lists of runs are read by, newest first, however many there are. `run_history_outcome` answers "what ended last" and
 * "what failed last": without it either sorts the newest day. It is the one index more that a successful run pays for; ends
 * come in rising order, so each falls on its rightmost page. The failures of one task among millions of successes have an
 * index that successes are not in. Live runs that are claimed or ready have indexes already; the rest, which is what waits for
 * a place, for its task or for a decision, gets one that ready and claimed runs are not in.
 */
export const browse = (s: string) => `
create index run_history_outcome on ${s}.run_history (outcome, ended_ms, id);
create index run_history_trouble on ${s}.run_history (task_id, outcome, ended_ms, id) where outcome <> 0;
create index run_aside on ${s}.run (due_ms, id) where state in (0, 1, 4);
`;
