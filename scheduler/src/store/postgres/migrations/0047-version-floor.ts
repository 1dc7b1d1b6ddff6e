/**
 * Above every version that a task, a calendar or a secret had when the store last went back, and those that it may have lost: the next
 * version of each is above it, also of one that is made anew. What a process, a browser or a sealed value remembers by name and version is
 * never another's. Older code goes on from the version in the row.
 */
export const versionFloor = (s: string) => `
alter table ${s}.cluster add column version_floor int not null default 0;
create function ${s}.next_version(version int) returns int language sql stable as
  $f$ select greatest($1, version_floor) + 1 from ${s}.cluster $f$;
`;
