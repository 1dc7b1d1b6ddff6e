/**
 * A calendar can move a slot to another time. `moved_slot` holds the nominal times that the row of the slot table at `slot_ms` covers; a
 * row without an entry covers its own time. `accounted_ms` holds future nominal times of the task's present version that an earlier version
 * already covered: they are not planned again. Older code writes neither, so it may run a slot again after an edit has moved it.
 */
export const movedSlots = (s: string) => `
create table ${s}.moved_slot (
  task_id int not null,
  nominal_ms bigint not null,
  slot_ms bigint not null,
  primary key (task_id, nominal_ms)
);
create index moved_slot_at on ${s}.moved_slot (task_id, slot_ms);
alter table ${s}.task add column accounted_ms bigint[];
`;
