/**
 * A promoted standby may lack the last transactions that the former primary committed. No decision may be made until the living processes
 * have reported which of these transactions they remember. So the store itself refuses every write that makes a decision, from any client:
 * also from an older Carillon, or over a connection that a pooler has moved.
 *
 * A promotion and a point-in-time recovery change the timeline of the server's log. `cluster.timeline` is the timeline for which the
 * content is known to be complete. If a hosting service hides its timeline, the time at which the server started is used instead. A plain
 * restart changes this time too, and causes a recovery that finds nothing missing.
 *
 * SQL state CA001: nothing was changed; repeat the statement after the recovery.
 */
export const recovery = (s: string) => `
create function ${s}.log_timeline() returns text language sql volatile as
  $f$ select left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) $f$;
create function ${s}.store_system() returns text language sql volatile as
  $f$ select system_identifier::text from pg_control_system() $f$;
do $d$ begin
  perform ${s}.log_timeline();
exception when others then
  create or replace function ${s}.log_timeline() returns text language sql volatile as
    $f$ select to_char(pg_postmaster_start_time() at time zone 'UTC', '"start "YYYYMMDDHH24MISSUS') $f$;
end $d$;
do $d$ begin
  perform ${s}.store_system();
exception when others then
  create or replace function ${s}.store_system() returns text language sql volatile as $f$ select null::text $f$;
end $d$;

alter table ${s}.cluster
  add column timeline text,
  add column system_id text,
  -- The number of the last recovery, whether it is over or not.
  add column recovery int not null default 0,
  -- Since when one is under way, for the contents of which timeline; null: none is.
  add column recovering_since_ms bigint,
  add column recovering_timeline text;
update ${s}.cluster set timeline = ${s}.log_timeline(), system_id = ${s}.store_system();

create table ${s}.recovery (
  number int primary key,
  began_ms bigint not null,
  ended_ms bigint,
  -- By how much the store went back, as far as anybody could tell.
  back_ms bigint,
  runs int not null default 0,
  verdicts int not null default 0,
  -- Nodes that were at work by the book and did not come: what only they knew is not known.
  missing text[] not null default '{}'
);

-- The sessions that were open when the recovery began: each tells what it remembers, or its timeout passes.
create table ${s}.recovery_session (
  recovery int not null,
  session_id bigint not null,
  node text not null,
  timeout_ms int not null,
  told boolean not null default false,
  primary key (recovery, session_id)
);

create function ${s}.whole() returns boolean language sql volatile as
  $f$ select timeline is not distinct from ${s}.log_timeline() and recovering_since_ms is null from ${s}.cluster $f$;

create function ${s}.refuse_unless_whole() returns trigger language plpgsql as $f$
begin
  if (select timeline is not distinct from ${s}.log_timeline() and recovering_since_ms is null from ${s}.cluster)
     or current_setting('carillon.recovery', true) = 'on' then return null; end if;
  raise exception 'what was written last may be missing' using errcode = 'CA001';
end $f$;
${["run", "plan", "leadership", "task", "operation", "gathering", "arrival", "lock", "grace_lock"]
  .map(
    (table) => `create trigger whole before insert or update or delete on ${s}.${table}
  for each statement execute function ${s}.refuse_unless_whole();`,
  )
  .join("\n")}
${["session", "lock_session"]
  .map(
    (table) => `create trigger whole before insert on ${s}.${table}
  for each statement execute function ${s}.refuse_unless_whole();`,
  )
  .join("\n")}
`;
