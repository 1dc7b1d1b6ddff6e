/**
 * A task's history in its full order: by the time of the end, then by number. This index replaces an index without the number, with which a
 * page of one task's runs had to be sorted, and a generic plan read the whole day instead.
 */
export const taskHistory = (s: string) => `
drop index ${s}.run_history_task;
create index run_history_task on ${s}.run_history (task_id, ended_ms, id);
`;
