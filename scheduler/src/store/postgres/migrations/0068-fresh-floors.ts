/**
 * The lower bounds of versions and fences are now read when they are used, not from the statement's snapshot, because the check that the
 * store is complete also reads the current state. Otherwise a statement that began just before a recovery ended could pass this check with
 * an old snapshot, and issue a version, or the fence of a grace lock, a second time. Calendars, secrets and users have versions too, so
 * they can now be written only while the store is complete.
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
