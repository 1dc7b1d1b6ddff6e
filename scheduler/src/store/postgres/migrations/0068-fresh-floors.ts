/**
 * Version floors and fence floors are read when they are used, not by the statement's snapshot. The check that the store is whole reads the current
 * state, so a statement that began just before the end of a recovery passed the check, and then gave out a version, or a fence of a grace lock, a
 * second time. Calendars, secrets and users have versions too; from now on they can only be written while the store is whole.
 */
export const freshFloors = (s: string) => `
create or replace function ${s}.next_version(version int) returns int language sql volatile as
  $f$ select greatest($1, version_floor) + 1 from ${s}.cluster $f$;
create function ${s}.next_grace_fence(fence bigint) returns bigint language sql volatile as
  $f$ select greatest($1, grace_floor) + 1 from ${s}.cluster $f$;
${["calendar", "secret", "user_account"]
  .map(
    (table) => `create trigger whole before insert or update or delete on ${s}.${table}
  for each statement execute function ${s}.refuse_unless_whole();`,
  )
  .join("\n")}
`;
