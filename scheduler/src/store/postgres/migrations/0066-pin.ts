/**
 * `routed` counts `pin` too. The expression of a generated column cannot be changed without rewriting each task under a lock, so from now
 * on a trigger sets the column. An older leader sends each try of such a task to any worker.
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
