/**
 * `of_name`: the task whose schedule this task is; null: it is no schedule. `of_version`: the version of that task by which the schedule's
 * definition was made. An older node runs schedules as what they are in the store, tasks; what changes in their task reaches them with the
 * next leader that knows of them.
 */
export const schedules = (s: string) => `
alter table ${s}.task add column of_name text, add column of_version int;
create index task_of on ${s}.task (of_name) where of_name is not null and deleted_ms is null;
`;
