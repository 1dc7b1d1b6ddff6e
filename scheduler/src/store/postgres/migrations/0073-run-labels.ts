/**
 * A run may have labels. The indexes hold only runs that have some: others cost them nothing. A list of entries that wait for the index
 * (`fastupdate`) would be read whole by each query: 18 ms of 19. `task.run_labels` is the part of the definition that new runs copy, beside
 * it, since reading it from a long definition would cost each of them. Nodes of older code make runs without their task's labels, and drop a
 * run's labels as it ends.
 */
export const runLabels = (s: string) => `
alter table ${s}.run add column labels jsonb;
alter table ${s}.run_history add column labels jsonb;
create index run_labels on ${s}.run using gin (labels jsonb_path_ops) with (fastupdate = off) where labels is not null;
create index run_history_labels on ${s}.run_history using gin (labels jsonb_path_ops) with (fastupdate = off) where labels is not null;
alter table ${s}.task add column run_labels jsonb;
create function ${s}.task_run_labels() returns trigger language plpgsql as $f$
begin
  new.run_labels := new.definition->'runLabels';
  return new;
end $f$;
create trigger run_labels before insert or update of definition on ${s}.task for each row execute function ${s}.task_run_labels();
`;
