/**
 * Labels of runs. The indexes contain only runs that have labels, so other runs cost nothing. `fastupdate` is off, because each query would
 * read the whole list of entries that are not yet in the index: 18 ms of 19. `task.run_labels` duplicates the part of the definition that
 * new runs copy, because reading it from a long definition would make each new run slower. Nodes of older versions create runs without
 * their task's labels, and delete a run's labels when it ends.
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
