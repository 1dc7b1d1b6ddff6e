import type { AccessStore, Credential, Token, User } from "../access-store.ts";
import { CarillonError } from "../errors.ts";
import { type Json, sortedJson } from "../json.ts";
import type { SqlClient } from "../store.ts";
import { audited } from "./audit.ts";
import type { Database } from "./database.ts";

/** How long an answer can be asked for again by its idempotency key. */
const answerKeptMs = 86_400_000;

const asJson = ({ name, role, grants, disabledMs }: User): Json => ({
  ...{ name, role, disabled: disabledMs !== null },
  ...(grants.length === 0 ? {} : { grants: grants as unknown as Json }),
});
const tokenJson = ({ name, user, role, scopes, namespaces, expiresMs }: Token): Json => ({
  ...{ name, user, role, scopes, expiresMs },
  ...(namespaces === null ? {} : { namespaces }),
});

export function accessStore(database: Database): AccessStore {
  const s = database.schema;
  const userFields = (u: string) =>
    `${u}.id as "userId", ${u}.name, ${u}.version, ${u}.role, ${u}.grants, ${u}.created_ms as "createdMs", ${u}.created_by as "createdBy",
    ${u}.disabled_ms as "disabledMs", ${u}.subject is not null as provided`;
  const tokenFields = `t.id as "tokenId", t.name, u.name as user, t.user_id as "userId", t.role, t.scopes, t.namespaces, t.created_ms as "createdMs",
    t.expires_ms as "expiresMs", t.revoked_ms as "revokedMs"`;
  const tokensFrom = `${s}.token t join ${s}.user_account u on u.id = t.user_id`;
  type UserRow = User & { hash: string | null };

  return {
    users: (afterName, limit) =>
      database.query<User>(
        "access-users",
        `select ${userFields("u")} from ${s}.user_account u where removed_ms is null and name > $1 order by name limit $2`,
        [afterName, limit],
      ),

    async userByName(name) {
      const [row] = await database.query<UserRow>(
        "access-user",
        `select ${userFields("u")}, u.hash from ${s}.user_account u where name = $1 and removed_ms is null`,
        [name],
      );
      return row ?? null;
    },

    createUser({ name, hash, role, grants = [] }, { author, reason, nowMs }) {
      const now = Math.round(nowMs);
      return database.transaction(async (client) => {
        // Whom a provider calls so stays removed: the row gives the name away and keeps the rest. No other name has a space in it.
        await client.query(
          `update ${s}.user_account set name = name || ' ' || id where name = $1 and removed_ms is not null and subject is not null`,
          [name],
        );
        const { rows } = await client.query(
          `insert into ${s}.user_account as u (name, hash, role, created_ms, created_by, grants) values ($1, $2, $3, $4, $5, $6)
           on conflict (name) do update set hash = $2, role = $3, created_ms = $4, created_by = $5, grants = $6, removed_ms = null,
             disabled_ms = null, version = u.version + 1
           where u.removed_ms is not null returning ${userFields("u")}`,
          [name, hash, role, now, author, JSON.stringify(grants)],
        );
        if (!rows[0]) {
          throw new CarillonError("USER_NAME_TAKEN", `there is a user ${name} already`, {
            hint: "Choose another name, or let this one in again.",
          });
        }
        const user = rows[0] as unknown as User;
        await audited(client, s, {
          ...{ atMs: nowMs, who: author, act: "create", about: "user", named: name },
          ...{ before: null, after: asJson(user), why: reason },
        });
        return user;
      });
    },

    providedUser({ issuer, subject, name, role, grants }, { author, reason, nowMs }) {
      const now = Math.round(nowMs);
      const given = JSON.stringify(grants);
      return database.transaction(async (client) => {
        const { rows: there } = await client.query(
          `select ${userFields("u")}, u.removed_ms is not null as removed from ${s}.user_account u
           where issuer = $1 and subject = $2 for update`,
          [issuer, subject],
        );
        const [{ removed, ...before } = { removed: false }] = there;
        if (before.userId === undefined) {
          const values = [name, role, given, issuer, subject, now, author];
          // A name that was a password's, and is nobody's any more, is free.
          const { rows: freed } = await client.query(
            `update ${s}.user_account u set role = $2, grants = $3, issuer = $4, subject = $5, created_ms = $6, created_by = $7,
               hash = null, removed_ms = null, disabled_ms = null, version = version + 1
             where name = $1 and removed_ms is not null and subject is null returning ${userFields("u")}`,
            values,
          );
          // Two first sign-ins at once: the second waits for the first one's row, and then finds that the name is taken.
          const { rows: made } = await client.query(
            `insert into ${s}.user_account as u (name, role, grants, issuer, subject, created_ms, created_by)
             values ($1, $2, $3, $4, $5, $6, $7) on conflict do nothing returning ${userFields("u")}`,
            values,
          );
          const [row] = [...freed, ...made];
          if (!row) {
            throw new CarillonError(
              "USER_NAME_TAKEN",
              `there is a user ${name} already, whom the provider does not know`,
              {
                hint: "An admin can remove the one or the provider can give the other another name. If both are new, sign in again.",
              },
            );
          }
          const user = row as unknown as User;
          await audited(client, s, {
            ...{ atMs: nowMs, who: author, act: "create", about: "user", named: name },
            ...{ before: null, after: asJson(user), why: reason },
          });
          return user;
        }
        const was = before as unknown as User;
        // Whoever was removed here stays so, whatever the provider says.
        if (removed) return { ...was, disabledMs: was.disabledMs ?? now };
        const same = was.role === role && sortedJson(was.grants) === sortedJson(grants);
        if (same) return was;
        const { rows } = await client.query(
          `update ${s}.user_account u set role = $2, grants = $3, version = version + 1 where id = $1 returning ${userFields("u")}`,
          [was.userId, role, given],
        );
        const user = rows[0] as unknown as User;
        await audited(client, s, {
          ...{ atMs: nowMs, who: author, act: "change", about: "user", named: user.name },
          ...{ before: asJson(was), after: asJson(user), why: reason },
        });
        return user;
      });
    },

    createFirst({ name, hash }, nowMs) {
      return database.transaction(async (client) => {
        // Two nodes that start at once: the second waits here, and then finds the first one's.
        await client.query(`select pg_advisory_xact_lock(hashtext($1))`, [`${s} first user`]);
        const { rows } = await client.query(
          `insert into ${s}.user_account (name, hash, role, created_ms, created_by)
           select $1, $2, 'admin', $3, 'the first start' where not exists (select from ${s}.user_account) returning id`,
          [name, hash, Math.round(nowMs)],
        );
        if (rows.length === 0) return false;
        await audited(client, s, {
          ...{ atMs: nowMs, who: "the first start", act: "create", about: "user", named: name },
          ...{ before: null, after: { name, role: "admin", disabled: false }, why: "there was no user" },
        });
        return true;
      });
    },

    changeUser(name, given, { author, reason, nowMs }) {
      const { role, grants, hash, disabled, removed, keeping, ifVersion = null } = given;
      const now = Math.round(nowMs);
      return database.transaction(async (client) => {
        // All admins are locked, in order: of two that each take the other's role away one finds that it would be the last.
        const { rows: locked } = await client.query(
          `select ${userFields("u")} from ${s}.user_account u where removed_ms is null and (name = $1 or role = 'admin') order by id for update`,
          [name],
        );
        const all = locked as unknown as User[];
        const before = all.find((user) => user.name === name);
        if (!before) throw unknownUser(name);
        if (ifVersion !== null && ifVersion !== before.version) throw staleUser(before, ifVersion);
        const others = all.filter((user) => user.name !== name && user.role === "admin" && user.disabledMs === null);
        const stays = !removed && disabled !== true && (role === undefined ? before.role : role) === "admin";
        if (before.role === "admin" && before.disabledMs === null && !stays && others.length === 0) {
          throw new CarillonError("ADMIN_NEEDED", `${name} is the only admin`, {
            hint: "Make another user an admin first.",
          });
        }
        const { rows } = await client.query(
          `update ${s}.user_account u set role = case when $7 then $2 else role end, hash = coalesce($3, hash), grants = coalesce($8, grants),
                  disabled_ms = case when $4::boolean then coalesce(disabled_ms, $5) when $4 is null then disabled_ms end,
                  removed_ms = case when $6 then $5::bigint end, version = version + case when $9 then 1 else 0 end
           where id = $1 returning ${userFields("u")}`,
          [
            ...[before.userId, role ?? null, hash ?? null, disabled ?? null, now, removed ?? false],
            ...[role !== undefined, grants === undefined ? null : JSON.stringify(grants)],
            role !== undefined || grants !== undefined || disabled !== undefined,
          ],
        );
        const after = rows[0] as unknown as User;
        if (hash !== undefined || disabled || removed)
          await client.query(`delete from ${s}.sign_in where user_id = $1 and hash is distinct from $2`, [
            before.userId,
            keeping ?? null,
          ]);
        if (disabled || removed)
          await client.query(`update ${s}.token set revoked_ms = $2 where user_id = $1 and revoked_ms is null`, [
            before.userId,
            now,
          ]);
        await audited(client, s, {
          ...{ atMs: nowMs, who: author, act: removed ? "remove" : hash === undefined ? "change" : "set password" },
          ...{ about: "user", named: name, before: asJson(before), after: removed ? null : asJson(after), why: reason },
        });
        return after;
      });
    },

    async signIn(userId, hash, expiresMs, nowMs, password) {
      // Locked: a change that ends the user's sign-ins comes before this one, which then is none, or after it, and ends it.
      const made = await database.query(
        "access-sign-in",
        `with who as (
           select id from ${s}.user_account
           where id = $2 and removed_ms is null and disabled_ms is null and ($5::text is null or hash = $5) for share)
         insert into ${s}.sign_in (hash, user_id, created_ms, expires_ms) select $1, id, $3, $4 from who returning user_id`,
        [hash, userId, Math.round(nowMs), Math.round(expiresMs), password ?? null],
      );
      return made.length > 0;
    },

    async signOut(hash) {
      await database.query("access-sign-out", `delete from ${s}.sign_in where hash = $1`, [hash]);
    },

    async signInsOf(hashes) {
      const rows = await database.query<User & { expiresMs: number; hash: Buffer }>(
        "access-sign-ins-of",
        `select ${userFields("u")}, i.expires_ms as "expiresMs", i.hash from ${s}.sign_in i join ${s}.user_account u on u.id = i.user_id
         where i.hash = any($1) and u.removed_ms is null`,
        [hashes],
      );
      return hashes.map((wanted): Credential | null => {
        const row = rows.find(({ hash }) => hash.equals(wanted));
        if (!row) return null;
        const { expiresMs, hash: _, ...user } = row;
        return { user, expiresMs, token: null };
      });
    },

    tokens: (userId, beforeId, limit) =>
      database.query<Token>(
        "access-tokens",
        `select ${tokenFields} from ${tokensFrom} where ($1::int is null or t.user_id = $1) and t.id < $2 order by t.id desc limit $3`,
        [userId, Math.min(beforeId, 2 ** 31 - 1), limit],
      ),

    createToken(
      { userId, name, hash, role, scopes, namespaces = null, expiresMs, by = null },
      { author, reason, nowMs },
    ) {
      return database.transaction(async (client) => {
        // Locked until it is there: what ends the user or the token that makes it ends it, too.
        const { rows: users } = await client.query(
          `select from ${s}.user_account where id = $1 and removed_ms is null and disabled_ms is null for share`,
          [userId],
        );
        const { rows: makers } = await client.query(
          `select id from ${s}.token where user_id = $1 and name = $2 and revoked_ms is null for share`,
          [userId, by],
        );
        if (users.length === 0 || (by !== null && makers.length === 0))
          throw new CarillonError("SIGN_IN_NEEDED", "whoever makes the token has been locked out", {
            hint: "Sign in again, or use a token that was not revoked.",
          });
        const { rows } = await client.query(
          `insert into ${s}.token (user_id, name, hash, role, scopes, created_ms, expires_ms, namespaces, made_by)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
           on conflict (user_id, name) where revoked_ms is null do nothing returning id`,
          [
            ...[userId, name, hash, role, scopes, Math.round(nowMs), Math.round(expiresMs), namespaces],
            makers[0]?.id ?? null,
          ],
        );
        if (!rows[0]) {
          throw new CarillonError("TOKEN_NAME_TAKEN", `there is a token ${name} already`, {
            hint: "Choose another name, or revoke the old one first.",
          });
        }
        const token = await read(client, rows[0].id as number);
        await audited(client, s, {
          ...{ atMs: nowMs, who: author, act: "create", about: "token", named: `${token.user}/${name}` },
          ...{ before: null, after: tokenJson(token), why: reason },
        });
        return token;
      });
    },

    revokeToken(userId, name, { author, reason, nowMs }) {
      return database.transaction(async (client) => {
        const { rows } = await client.query(
          `select id, revoked_ms from ${s}.token where user_id = $1 and name = $2 order by id desc limit 1 for update`,
          [userId, name],
        );
        const [row] = rows;
        if (!row)
          throw new CarillonError("TOKEN_UNKNOWN", `there is no token ${name}`, {
            hint: "The list of tokens has their names.",
          });
        if (row.revoked_ms !== null) return read(client, row.id as number);
        // Again until there is none: one of them may have been making another.
        for (let ended = [row.id as number]; ended.length > 0; ) {
          const { rows: found } = await client.query(
            `with recursive line (id) as (select $1::int union select t.id from ${s}.token t join line on t.made_by = line.id)
             update ${s}.token t set revoked_ms = $2 from line where t.id = line.id and t.revoked_ms is null returning t.id`,
            [row.id, Math.round(nowMs)],
          );
          ended = found.map(({ id }) => id as number).sort((a, b) => a - b);
          for (const id of ended) {
            const token = await read(client, id);
            await audited(client, s, {
              ...{ atMs: nowMs, who: author, act: "revoke", about: "token", named: `${token.user}/${token.name}` },
              ...{ before: tokenJson(token), after: null, why: reason },
            });
          }
        }
        return read(client, row.id as number);
      });
    },

    async tokensOf(tokenIds) {
      const rows = await database.query<
        User & {
          hash: Buffer;
          tokenId: number;
          tName: string;
          tRole: Token["role"];
          scopes: Token["scopes"];
          namespaces: Token["namespaces"];
          expiresMs: number;
          revokedMs: number | null;
        }
      >(
        "access-tokens-of",
        `select ${userFields("u")}, t.hash, t.id as "tokenId", t.name as "tName", t.role as "tRole", t.scopes, t.namespaces,
                t.expires_ms as "expiresMs", t.revoked_ms as "revokedMs"
         from ${tokensFrom} where t.id = any($1) and u.removed_ms is null`,
        [tokenIds],
      );
      return tokenIds.map((wanted) => {
        const row = rows.find(({ tokenId }) => tokenId === wanted);
        if (!row) return null;
        const { hash, tokenId: _, tName: name, tRole: role, scopes, namespaces, expiresMs, revokedMs, ...user } = row;
        return { user, hash, expiresMs, token: { name, role, scopes, namespaces, revokedMs } };
      });
    },

    async sweep(nowMs) {
      await database.query("access-sweep-sign-ins", `delete from ${s}.sign_in where expires_ms < $1`, [
        Math.round(nowMs),
      ]);
      await database.query("access-sweep-answers", `delete from ${s}.idempotent_answer where begun_ms < $1`, [
        Math.round(nowMs - answerKeptMs),
      ]);
    },
  };

  async function read(client: SqlClient, tokenId: number): Promise<Token> {
    const { rows } = await client.query(`select ${tokenFields} from ${tokensFrom} where t.id = $1`, [tokenId]);
    return rows[0] as unknown as Token;
  }
}

const staleUser = ({ name, version }: User, expected: number): CarillonError =>
  new CarillonError(
    "USER_STALE",
    `user ${name} is at version ${version}; this change was made from version ${expected}`,
    {
      hint: "Read the user again, look at what changed, and repeat the change.",
    },
  );
const unknownUser = (name: string): CarillonError =>
  new CarillonError("USER_UNKNOWN", `there is no user ${name}`, { hint: "See the list of users." });
