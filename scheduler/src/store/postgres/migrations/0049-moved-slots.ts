/**
 * A calendar can move a slot to another time. `moved_slot` holds the nominal times that the ledger's row at `slot_ms` accounts for; a ledger
 * row without an entry accounts for its own time. `accounted_ms` holds nominal times of the task's present version that lie ahead and were
 * accounted for before that version: they are not planned again. Older code writes neither, and may run a slot again after an edit moves
 * it.
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
