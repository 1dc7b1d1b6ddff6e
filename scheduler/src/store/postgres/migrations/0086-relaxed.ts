/** The function `whole` reads the tables as they are when it is called; `whole_as_read` reads them as the calling statement does. */
const wholeSql = (s: string) => `$f$
  select timeline is not distinct from ${s}.log_timeline() and recovering_since_ms is null
    and (not relaxed or exists (select from ${s}.intact)) from ${s}.cluster $f$`;

/**
 * Enqueues whose commit does not wait for the disk (`durability: "relaxed"`). A crash of the server can lose the last of them, and nothing
 * else. `cluster.relaxed` is true once the store has had such an enqueue, or a task with this durability.
 *
 * The table `intact` has one row. It is unlogged, so PostgreSQL empties it whenever it recovers from a crash, and leaves it unchanged at a
 * regular stop and start. The start time of the server would not do: if one of its processes crashes, the server loses its buffers but
 * keeps that time; and it changes with each restart that loses nothing. A position of the log would not do either: other transactions soon
 * raise it above a remembered one. While `cluster.relaxed` is true and the row is missing, the store refuses every write that makes a
 * decision, as after a promotion, and the processes put back what they remember. Stores without relaxed enqueues are not affected.
 */
export const relaxed = (s: string) => `
alter table ${s}.cluster add column relaxed boolean not null default false;
alter table ${s}.task add column relaxed boolean not null default false;
create unlogged table ${s}.intact (one boolean primary key default true check (one));
insert into ${s}.intact default values;

-- If relaxed enqueues are in use already, the row may be missing because of a crash. Then only a recovery may insert it.
create function ${s}.use_relaxed() returns void language sql as $f$
  with first as (update ${s}.cluster set relaxed = true where not relaxed returning true)
  insert into ${s}.intact select true from first on conflict do nothing $f$;

-- Not a generated column: adding one rewrites the table, and until then no task can be claimed.
create function ${s}.relaxed_by_definition() returns trigger language plpgsql as $f$
begin
  new.relaxed := coalesce(new.definition->>'durability' = 'relaxed', false);
  if new.relaxed then perform ${s}.use_relaxed(); end if;
  return new;
end $f$;
create trigger relaxed before insert or update of definition on ${s}.task
  for each row execute function ${s}.relaxed_by_definition();

create or replace function ${s}.whole() returns boolean language sql volatile as ${wholeSql(s)};
create function ${s}.whole_as_read() returns boolean language sql stable as ${wholeSql(s)};

-- The table is read in a statement of its own, so that stores without relaxed enqueues do not pay for it.
create or replace function ${s}.refuse_unless_whole() returns trigger language plpgsql as $f$
declare
  may_lack boolean;
begin
  select relaxed into may_lack from ${s}.cluster
  where timeline is not distinct from ${s}.log_timeline() and recovering_since_ms is null;
  if may_lack then may_lack := not exists (select from ${s}.intact); end if;
  if not may_lack or current_setting('carillon.recovery', true) = 'on' then return null; end if;
  raise exception 'what was written last may be missing' using errcode = 'CA001';
end $f$;
`;
