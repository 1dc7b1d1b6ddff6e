/**
 * Where a slot lies at another time than the task's own schedule has it, since a calendar moved it: the nominal times that the ledger's row at
 * `slot_ms` accounts for. A row of the ledger that has none here accounts for its own time. `accounted_ms` are the nominal times of the task's
 * present version that lie ahead and had their account before it: they are not planned again. Older code leaves both out, and may run a
 * slot again that an edit moves after it ran.
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
