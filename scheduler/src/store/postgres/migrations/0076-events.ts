/**
 * Events of runs, recorded only for the types in `event_kind`, which some process wants. `kind` is the outcome of a run that ended, or one
 * more than the last outcome for an attempt that did not end its run. Readers find new events by their transaction numbers: a time or a
 * number from a sequence may be lower than in rows that were committed earlier. Nodes of older versions record no events.
 *
 * `event_consumer` has the places of named consumers. `epoch` is raised by each process that starts to serve the name.
 */
export const events = (s: string) => `
create sequence ${s}.event_id;
create table ${s}.event (
  xid xid8 not null default pg_current_xact_id(),
  id bigint not null default nextval('${s}.event_id'),
  ended_ms bigint not null,
  run_id bigint not null,
  task_id int not null,
  attempt int not null,
  kind smallint not null
) partition by range (ended_ms);
create index event_place on ${s}.event (xid, id);

create table ${s}.event_kind (
  kind smallint primary key,
  since xid8 not null default pg_current_xact_id(),
  until_ms bigint not null,
  -- Events of runs that ended before this time are not retained.
  kept_ms bigint not null default 0
);

create table ${s}.event_consumer (
  name text primary key,
  epoch bigint not null default 0,
  place jsonb not null,
  until_ms bigint not null
) with (fillfactor = 50);
`;
