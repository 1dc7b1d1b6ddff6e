/**
 * One task's history by outcome: what succeeded and what did not lie each in its own order. In an index of all its ends, a page of the
 * successes of a task that has failed ten thousand times read all of these, and one of a million would have taken ten seconds. The
 * index of failures alone is a part of it, so that a failure writes an entry less and a success as many as before.
 */
export const historyByOutcome = (s: string) => `
drop index ${s}.run_history_task;
drop index ${s}.run_history_trouble;
create index run_history_task on ${s}.run_history (task_id, outcome, ended_ms, id);
`;
