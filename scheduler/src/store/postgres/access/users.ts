import { userUnknown } from "../../../access/access.ts";
import type { NewUser, ProvidedUser, User, UserChange } from "../../../access/access-store.ts";
import type { Change } from "../../../base/change.ts";
import { CarillonError } from "../../../base/errors.ts";
import { type Json, sortedJson } from "../../../base/json.ts";
import type { Database } from "../database.ts";
import { audited } from "./audit.ts";
import { forgetFactor } from "./second-factors.ts";

const asJson = ({ name, role, grants, disabledMs }: User): Json => ({
  name,
  role,
  disabled: disabledMs !== null,
  ...(grants.length === 0 ? {} : { grants: grants as unknown as Json }),
});

type UserRow = User & { hash: string | null };

/** Returns the SQL select list for a user, from a row `u` of `user_account`. */
export const userFields = (s: string) =>
  `u.id as "userId", u.name, u.version, u.role, u.grants, u.created_ms as "createdMs", u.created_by as "createdBy",
  u.disabled_ms as "disabledMs", u.subject is not null as provided, coalesce(u.temporary_hash = u.hash, false) as temporary,
  (select f.confirmed_ms from ${s}.second_factor f where f.user_id = u.id) as "secondFactorMs"`;

export function users(database: Database, afterName: string, limit: number): Promise<User[]> {
  const s = database.schema;
  return database.query<User>(
    "access-users",
    `select ${userFields(s)} from ${s}.user_account u where removed_ms is null and name > $1 order by name limit $2`,
    [afterName, limit],
  );
}

export async function userByName(database: Database, name: string): Promise<(User & { hash: string | null }) | null> {
  const s = database.schema;
  const [row] = await database.query<UserRow>(
    "access-user",
    `select ${userFields(s)}, u.hash from ${s}.user_account u where name = $1 and removed_ms is null`,
    [name],
  );
  return row ?? null;
}

export async function rehash(database: Database, userId: number, from: string, to: string): Promise<void> {
  const s = database.schema;
  await database.query(
    "access-rehash",
    `update ${s}.user_account
    set hash = $3, temporary_hash = case when temporary_hash = $2 then $3 end where id = $1 and hash = $2`,
    [userId, from, to],
  );
}

export function createUser(
  database: Database,
  { name, hash, role, grants = [], temporary = false }: NewUser,
  { author, reason, nowMs }: Change,
): Promise<User> {
  const s = database.schema;
  const now = Math.round(nowMs);
  return database.transaction(async (client) => {
    // A removed user that an identity provider reported under this name stays removed: its row gets another name, so that the name is free.
    // The new name contains a space, which other names cannot contain.
    await client.query(
      `update ${s}.user_account set name = name || ' ' || id where name = $1 and removed_ms is not null and subject is not null`,
      [name],
    );
    const { rows } = await client.query(
      `insert into ${s}.user_account as u (name, hash, role, created_ms, created_by, grants, temporary_hash, version)
       values ($1, $2, $3, $4, $5, $6, $7, ${s}.next_version(0))
       on conflict (name) do update set hash = $2, role = $3, created_ms = $4, created_by = $5, grants = $6, temporary_hash = $7, removed_ms = null,
         disabled_ms = null, version = u.version + 1
       where u.removed_ms is not null returning ${userFields(s)}`,
      [name, hash, role, now, author, JSON.stringify(grants), temporary ? hash : null],
    );
    if (!rows[0]) {
      throw new CarillonError("USER_NAME_TAKEN", `there is a user ${name} already`, {
        hint: "Choose another name, or let this one in again.",
      });
    }
    const user = rows[0] as unknown as User;
    // A node of an older version may have removed a user with this name without removing the second factor.
    await forgetFactor(client, s, user.userId);
    await audited(client, s, {
      atMs: nowMs,
      who: author,
      act: "create",
      about: "user",
      named: name,
      before: null,
      after: asJson(user),
      why: reason,
    });
    return user;
  });
}

export function providedUser(
  database: Database,
  { issuer, subject, name, role, grants }: ProvidedUser,
  { author, reason, nowMs }: Change,
): Promise<User> {
  const s = database.schema;
  const now = Math.round(nowMs);
  const given = JSON.stringify(grants);
  return database.transaction(async (client) => {
    const { rows: there } = await client.query(
      `select ${userFields(s)}, u.removed_ms is not null as removed from ${s}.user_account u
       where issuer = $1 and subject = $2 for update`,
      [issuer, subject],
    );
    const [{ removed, ...before } = { removed: false }] = there;
    if (before.userId === undefined) {
      const values = [name, role, given, issuer, subject, now, author];
      // The row of a removed user who had a password can be reused, so its name is available.
      const { rows: freed } = await client.query(
        `update ${s}.user_account u set role = $2, grants = $3, issuer = $4, subject = $5, created_ms = $6, created_by = $7,
           hash = null, removed_ms = null, disabled_ms = null, version = version + 1
         where name = $1 and removed_ms is not null and subject is null returning ${userFields(s)}`,
        values,
      );
      // If two first sign-ins arrive at once, the second waits for the first one's row and then finds that the name is taken.
      const { rows: made } = await client.query(
        `insert into ${s}.user_account as u (name, role, grants, issuer, subject, created_ms, created_by, version)
         values ($1, $2, $3, $4, $5, $6, $7, ${s}.next_version(0)) on conflict do nothing returning ${userFields(s)}`,
        values,
      );
      const [row] = [...freed, ...made];
      if (!row) {
        throw new CarillonError("USER_NAME_TAKEN", `there is a user ${name} already, whom the provider does not know`, {
          hint: "An admin can remove the one or the provider can give the other another name. If both are new, sign in again.",
        });
      }
      const user = row as unknown as User;
      await audited(client, s, {
        atMs: nowMs,
        who: author,
        act: "create",
        about: "user",
        named: name,
        before: null,
        after: asJson(user),
        why: reason,
      });
      return user;
    }
    const was = before as unknown as User;
    // A user that was removed here stays removed, even if the provider still reports the user.
    if (removed) return { ...was, disabledMs: was.disabledMs ?? now };
    const same = was.role === role && sortedJson(was.grants) === sortedJson(grants);
    if (same) return was;
    const { rows } = await client.query(
      `update ${s}.user_account u set role = $2, grants = $3, version = version + 1 where id = $1 returning ${userFields(s)}`,
      [was.userId, role, given],
    );
    const user = rows[0] as unknown as User;
    await audited(client, s, {
      atMs: nowMs,
      who: author,
      act: "change",
      about: "user",
      named: user.name,
      before: asJson(was),
      after: asJson(user),
      why: reason,
    });
    return user;
  });
}

export function createFirst(
  database: Database,
  { name, hash, temporary }: { name: string; hash: string; temporary: boolean },
  nowMs: number,
): Promise<boolean> {
  const s = database.schema;
  return database.transaction(async (client) => {
    // If two nodes start at once, the second waits for this lock and then finds the user that the first has created.
    await client.query(`select pg_advisory_xact_lock(hashtext($1))`, [`${s} first user`]);
    const { rows } = await client.query(
      `insert into ${s}.user_account (name, hash, role, created_ms, created_by, temporary_hash)
       select $1, $2, 'admin', $3, 'the first start', $4 where not exists (select from ${s}.user_account) returning id`,
      [name, hash, Math.round(nowMs), temporary ? hash : null],
    );
    if (rows.length === 0) {
      // The user may come from an earlier attempt whose response was lost. Each hash has a random salt, so an equal hash can only be from
      // that attempt.
      const { rows: mine } = await client.query(`select from ${s}.user_account where name = $1 and hash = $2`, [
        name,
        hash,
      ]);
      return mine.length > 0;
    }
    await audited(client, s, {
      atMs: nowMs,
      who: "the first start",
      act: "create",
      about: "user",
      named: name,
      before: null,
      after: { name, role: "admin", disabled: false },
      why: "there was no user",
    });
    return true;
  });
}

export function changeUser(
  database: Database,
  name: string,
  given: UserChange,
  { author, reason, nowMs }: Change,
): Promise<User> {
  const s = database.schema;
  const { role, grants, hash, temporary = false, disabled, removed, keeping, ifVersion = null } = given;
  const now = Math.round(nowMs);
  return database.transaction(async (client) => {
    // The rows of all admins are locked in the order of their ids. If two admins remove each other's role at once, the second change
    // therefore sees the first, and is refused because no admin would be left.
    const { rows: locked } = await client.query(
      `select ${userFields(s)} from ${s}.user_account u where removed_ms is null and (name = $1 or role = 'admin') order by id for update`,
      [name],
    );
    const all = locked as unknown as User[];
    const before = all.find((user) => user.name === name);
    if (!before) throw userUnknown(name);
    if (ifVersion !== null && ifVersion !== before.version) throw staleUser(before, ifVersion);
    const others = all.filter((user) => user.name !== name && user.role === "admin" && user.disabledMs === null);
    const stays = !removed && disabled !== true && (role === undefined ? before.role : role) === "admin";
    if (before.role === "admin" && before.disabledMs === null && !stays && others.length === 0) {
      throw new CarillonError("ADMIN_NEEDED", `${name} is the only admin`, {
        hint: "Make another user an admin first.",
      });
    }
    const { rows } = await client.query(
      `update ${s}.user_account u set role = case when $7 then $2 else role end, hash = coalesce($3, hash),
              temporary_hash = coalesce($10, temporary_hash), grants = coalesce($8, grants),
              disabled_ms = case when $4::boolean then coalesce(disabled_ms, $5) when $4 is null then disabled_ms end,
              removed_ms = case when $6 then $5::bigint end, version = version + case when $9 then 1 else 0 end
       where id = $1 returning ${userFields(s)}`,
      [
        before.userId,
        role ?? null,
        hash ?? null,
        disabled ?? null,
        now,
        removed ?? false,
        role !== undefined,
        grants === undefined ? null : JSON.stringify(grants),
        role !== undefined || grants !== undefined || disabled !== undefined,
        // A stored hash of a former temporary password does no harm, because it differs from the hash of the current password.
        temporary ? hash : null,
      ],
    );
    const after = rows[0] as unknown as User;
    if (hash !== undefined || disabled || removed)
      await client.query(`delete from ${s}.sign_in where user_id = $1 and hash is distinct from $2`, [
        before.userId,
        keeping ?? null,
      ]);
    if (removed) await forgetFactor(client, s, before.userId);
    if (disabled || removed)
      await client.query(`update ${s}.token set revoked_ms = $2 where user_id = $1 and revoked_ms is null`, [
        before.userId,
        now,
      ]);
    await audited(client, s, {
      atMs: nowMs,
      who: author,
      act: removed ? "remove" : hash === undefined ? "change" : "set password",
      about: "user",
      named: name,
      before: asJson(before),
      after: removed ? null : asJson(after),
      why: reason,
    });
    return after;
  });
}

const staleUser = ({ name, version }: User, expected: number): CarillonError =>
  new CarillonError(
    "USER_STALE",
    `user ${name} is at version ${version}; this change was made from version ${expected}`,
    {
      hint: "Read the user again, look at what changed, and repeat the change.",
    },
  );
