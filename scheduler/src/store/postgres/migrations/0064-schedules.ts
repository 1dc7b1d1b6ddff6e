/**
 * `of_name`: the task whose schedule this task is; null: it is not a schedule. `of_version`: the version of that task by which the
 * schedule's definition was made. An older node runs schedules as tasks, which is how the store has them. Changes of their task reach them
 * with the next leader of newer code.
 */
export const schedules = (s: string) => `
alter table ${s}.task add column of_name text, add column of_version int;
create index task_of on ${s}.task (of_name) where of_name is not null and deleted_ms is null;
`;
