/**
 * `at_end`: the task's definition says what happens to it when no slot is left. An older leader leaves such tasks as they are. A task that
 * an older node edits keeps this mark: the definition itself is read wherever it counts.
 */
export const atEnd = (s: string) => `
alter table ${s}.plan add column at_end boolean not null default false;
create index plan_ended on ${s}.plan (task_id) where at_end and next_slot_ms is null and not paused;
`;
