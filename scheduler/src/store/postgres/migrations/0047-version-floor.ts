/**
 * A floor above every version that a task, a calendar or a secret had when the store last went back, including those that it may have lost.
 * The next version of each is above the floor, also if it is made anew. So a name and version that a process, a browser or a sealed value
 * remembers never mean another content. Older code continues from the version in the row.
 */
export const versionFloor = (s: string) => `
alter table ${s}.cluster add column version_floor int not null default 0;
create function ${s}.next_version(version int) returns int language sql stable as
  $f$ select greatest($1, version_floor) + 1 from ${s}.cluster $f$;
`;
