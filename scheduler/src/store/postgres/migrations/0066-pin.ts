/**
 * `routed` is now also true for tasks with `pin`. Changing the expression of a generated column would rewrite each task under a lock, so
 * from now on a trigger sets the column. A leader of an older version sends each attempt of such a task to any worker.
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
