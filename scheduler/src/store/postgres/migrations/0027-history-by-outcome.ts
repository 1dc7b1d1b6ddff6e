/**
 * Indexes of one task's history by outcome: successes and other ends each have their own order. With one index of all ends, a page of the
 * successes of a task with ten thousand failures read all of these failures; with a million it would have taken ten seconds. The new index
 * also replaces the index of failures alone, so a failure writes one entry fewer, and a success as many as before.
 */
export const historyByOutcome = (s: string) => `
drop index ${s}.run_history_task;
drop index ${s}.run_history_trouble;
create index run_history_task on ${s}.run_history (task_id, outcome, ended_ms, id);
`;
