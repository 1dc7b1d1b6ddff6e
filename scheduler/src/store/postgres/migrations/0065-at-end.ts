/**
 * `at_end`: true if the task's definition says what happens to the task when no slot is left. A leader of an older version leaves such
 * tasks unchanged. An edit by an older node does not update this column, which is only a filter: the code reads the definition itself.
 */
export const atEnd = (s: string) => `
alter table ${s}.plan add column at_end boolean not null default false;
create index plan_ended on ${s}.plan (task_id) where at_end and next_slot_ms is null and not paused;
`;
