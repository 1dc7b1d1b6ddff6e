/**
 * A task's history in its whole order: by the end's time, and within it by number. The index takes the place of one without the
 * number, under which a page of one task's runs had to be sorted, and a plan made for any task preferred to read the day.
 */
export const taskHistory = (s: string) => `
drop index ${s}.run_history_task;
create index run_history_task on ${s}.run_history (task_id, ended_ms, id);
`;
