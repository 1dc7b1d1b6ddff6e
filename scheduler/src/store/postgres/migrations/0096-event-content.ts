/**
 * Events about slots and changes, in addition to those of runs. `told` has their content; for events of runs, whose content is in the
 * history, it has only the run's labels, if there are any. `kind` continues after the numbers of the events of runs. Such an event has the
 * attempt 0, the run 0 if the slot has none, and the task 0 if it is not about a task.
 */
export const eventContent = (s: string) => `
alter table ${s}.event add column told jsonb;
`;
