/**
 * A lower bound for versions: at least every version that a task, a calendar or a secret had when the store last went back in time,
 * including versions that it may have lost. The next version of each is above this bound, even if the object is created again. So a name
 * and version that a process, a browser or an encrypted value refers to never get another content. Older code continues from the version in
 * the row.
 */
export const versionFloor = (s: string) => `
alter table ${s}.cluster add column version_floor int not null default 0;
create function ${s}.next_version(version int) returns int language sql stable as
  $f$ select greatest($1, version_floor) + 1 from ${s}.cluster $f$;
`;
