/**
 * `routed` counts `pin` too. A generated column's expression cannot be changed without writing each task anew under a lock, so a trigger
 * makes it from now on. An older leader sends each try of such a task to any worker.
 */
export const pin = (s: string) => `
alter table ${s}.task alter column routed drop expression;
create function ${s}.task_routed() returns trigger language plpgsql as $f$
begin
  new.routed := new.definition ?| array['route', 'labels', 'pin'] or new.definition->'limit'->>'perWorker' is not null;
  return new;
end $f$;
create trigger routed before insert or update of definition on ${s}.task for each row execute function ${s}.task_routed();
`;
