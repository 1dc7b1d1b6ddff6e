/**
 * The time zone rules by which tasks are planned, so that processes with different versions of the time zone database plan the same
 * slots. Each change of a zone's rules adds a row. `cluster.zones_version` is the newest version, `plan.zones_version` the version by
 * which a task was planned. If the latter is older than all rows of the task's zone, the zone's first row holds the rules by which the
 * task was planned. Versions of Carillon from before this migration use the rules of their own process.
 */
export const zoneRules = (s: string) => `
create table ${s}.zone_rules (
  name text not null,
  version int not null,
  -- The version of the time zone database, such as 2026a; empty: unknown.
  data text not null,
  -- The begin of what is kept and each change of offset in it, with the offset from then on, both in ms.
  starts_ms bigint[] not null,
  offsets_ms int[] not null,
  to_ms bigint not null,
  primary key (name, version)
);
alter table ${s}.cluster add column zones_version int not null default 0;
alter table ${s}.plan add column zones_version int not null default 0;
`;
