/**
 * Tasks are created by the million, so each new task is written with as little work as possible.
 *
 * `audit_created` writes and returns the audit rows of new tasks together with their places in the chain (docs/access/audit.md). Without
 * it, each row is written twice, because the trigger at the commit updates it and its five indexes. The function waits for the chain at
 * most 0.05 ms for each row. If another commit still holds the chain, the rows get their places like other rows that were skipped. With
 * `is_last` false, the trigger places them at the commit, because the caller's transaction goes on and would hold the chain.
 *
 * PostgreSQL checked three references to each new task, which took an eighth of the time. They cannot be violated: tasks are never deleted,
 * and a statement that writes these rows inserts or locks the task. The reference to the group stays: the group's number may be from before
 * the store went back in time, and then no longer exist.
 *
 * One trigger sets the columns of a task that three triggers set before.
 */
export const manyTasks = (s: string) => `
alter table ${s}.task_version drop constraint if exists task_version_task_id_fkey;
alter table ${s}.plan drop constraint if exists plan_task_id_fkey;
alter table ${s}.gate drop constraint if exists gate_task_id_fkey;

create function ${s}.task_columns() returns trigger language plpgsql as $f$
begin
  new.routed := new.definition ?| array['route', 'labels', 'pin'] or new.definition->'limit'->>'perWorker' is not null;
  new.run_labels := new.definition->'runLabels';
  new.relaxed := coalesce(new.definition->>'durability' = 'relaxed', false);
  if new.relaxed then perform ${s}.use_relaxed(); end if;
  return new;
end $f$;
drop trigger routed on ${s}.task;
drop trigger run_labels on ${s}.task;
drop trigger relaxed on ${s}.task;
drop function ${s}.task_routed(), ${s}.task_run_labels(), ${s}.relaxed_by_definition();
create trigger columns before insert or update of definition on ${s}.task for each row execute function ${s}.task_columns();

-- Rows that are written with an empty hash wait for their places already, and the trigger would only mark them.
drop trigger chained on ${s}.audit;
create constraint trigger chained after insert on ${s}.audit deferrable initially deferred
  for each row when (new.seq is null and new.hash is null) execute function ${s}.chain_audit();

create function ${s}.chain_hashes(start bytea, contents text[]) returns bytea[] language plpgsql immutable as $f$
declare
  last bytea := start;
  hashes bytea[] := '{}';
  content text;
begin
  foreach content in array contents loop
    last := sha256(last || convert_to(content, 'UTF8'));
    hashes := hashes || last;
  end loop;
  return hashes;
end $f$;

create function ${s}.audit_created(at bigint, author text, reason text, names text[], definitions jsonb[], is_last boolean)
returns table (entry_id bigint, entry_name text) language plpgsql as $f$
declare
  chain ${s}.audit_chain;
begin
  if names is null then return; end if;
  for attempt in 0 .. cardinality(names) / 40 loop
    exit when not is_last;
    if attempt > 0 then perform pg_sleep(0.002); end if;
    select * into chain from ${s}.audit_chain for update skip locked;
    exit when found;
  end loop;
  if chain.single is null then
    return query insert into ${s}.audit as a (at_ms, who, act, about, named, after, why, hash)
    select at, author, 'create', 'task', name, definition, reason, case when is_last then ''::bytea end
    from unnest(names, definitions) with ordinality as e (name, definition, n) order by n returning a.id, a.named;
    return;
  end if;
  if exists (select from ${s}.audit where seq is null and hash is not null and id > chain.older_until) then
    perform ${s}.chain_rows(chain, true);
    select * into chain from ${s}.audit_chain;
  end if;
  return query with entries as materialized (
    select n, nextval('${s.replaceAll("'", "''")}.audit_id_seq') as id, name, definition
    from unnest(names, definitions) with ordinality as e (name, definition, n)),
  contents as (
    select array_agg(jsonb_build_object('entry', id, 'at', at, 'who', author, 'act', 'create', 'about', 'task', 'named', name,
      'before', null, 'after', definition, 'why', reason)::text order by n) as all_of_them from entries),
  hashes as materialized (
    select h.* from contents, unnest(${s}.chain_hashes(chain.hash, all_of_them)) with ordinality as h (hash, n)),
  written as (
    insert into ${s}.audit as a (id, at_ms, who, act, about, named, after, why, seq, hash) overriding system value
    select id, at, author, 'create', 'task', name, definition, reason, chain.seq + n, h.hash
    from entries join hashes h using (n) order by n returning a.id, a.named),
  chained as (
    update ${s}.audit_chain c set seq = chain.seq + h.n, hash = h.hash from hashes h where h.n = cardinality(names))
  select w.id, w.named from written w;
end $f$;
`;
