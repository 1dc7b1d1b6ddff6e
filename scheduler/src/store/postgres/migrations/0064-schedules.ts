/**
 * `of_name`: if this row is a schedule of another task, the name of that task; otherwise null. `of_version`: the version of that task from
 * which the schedule's definition was made. The store has schedules as rows of `task`, and a node of an older version runs them as tasks.
 * The next leader of a newer version applies changes of the task to its schedules.
 */
export const schedules = (s: string) => `
alter table ${s}.task add column of_name text, add column of_version int;
create index task_of on ${s}.task (of_name) where of_name is not null and deleted_ms is null;
`;
