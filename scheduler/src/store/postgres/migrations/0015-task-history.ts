/**
 * A task's history in its whole order: by the end's time, then by number. This index replaces one without the number. Under that one a page
 * of one task's runs had to be sorted, and a generic plan preferred to read the whole day.
 */
export const taskHistory = (s: string) => `
drop index ${s}.run_history_task;
create index run_history_task on ${s}.run_history (task_id, ended_ms, id);
`;
