import type { Credential, EndedSignIns, NewSignIn, SignIn, User } from "../../../access/access-store.ts";
import type { Change } from "../../../base/change.ts";
import type { Database } from "../database.ts";
import { audited } from "./audit.ts";
import { userFields } from "./users.ts";

/**
 * Returns SQL for the time at which a sign-in ends if it is not used any more, in epoch ms.
 * @param idle an SQL expression for the idle limit in ms
 */
const endsSql = (idle: string) => `least(i.expires_ms, coalesce(i.seen_ms, i.created_ms) + ${idle}::bigint)`;

export async function signIn(
  database: Database,
  { userId, hash, expiresMs, password, secondFactor = false, address, agent }: NewSignIn,
  nowMs: number,
): Promise<boolean> {
  const s = database.schema;
  // The user's row is locked, because a concurrent change may end the user's sign-ins. If the change comes first, this sign-in fails; if it
  // comes second, it ends this sign-in too.
  const made = await database.query(
    "access-sign-in",
    `with who as (
       select id from ${s}.user_account
       where id = $2 and removed_ms is null and disabled_ms is null and ($5::text is null or hash = $5)
         -- A second factor that was added meanwhile: the password alone signs nobody in any more.
         and ($8 or subject is not null
              or not exists (select from ${s}.second_factor f where f.user_id = $2 and f.confirmed_ms is not null))
       for share)
     insert into ${s}.sign_in (hash, user_id, created_ms, expires_ms, address, agent, second_factor)
     select $1, id, $3, $4, $6, $7, $8 from who returning user_id`,
    [hash, userId, Math.round(nowMs), Math.round(expiresMs), password ?? null, address, agent, secondFactor],
  );
  return made.length > 0;
}

export async function signOut(database: Database, hash: Buffer): Promise<void> {
  const s = database.schema;
  await database.query("access-sign-out", `delete from ${s}.sign_in where hash = $1`, [hash]);
}

export async function signInsOf(database: Database, hashes: Buffer[], idleMs: number): Promise<(Credential | null)[]> {
  const s = database.schema;
  const rows = await database.query<User & { begunMs: number; expiresMs: number; isProven: boolean; hash: Buffer }>(
    "access-sign-ins-of",
    `select ${userFields(s)}, i.created_ms as "begunMs", ${endsSql("$2")} as "expiresMs",
            i.second_factor or u.subject is not null as "isProven", i.hash from ${s}.sign_in i join ${s}.user_account u on u.id = i.user_id
     where i.hash = any($1) and u.removed_ms is null`,
    [hashes, idleMs],
  );
  return hashes.map((wanted): Credential | null => {
    const row = rows.find(({ hash }) => hash.equals(wanted));
    if (!row) return null;
    const { begunMs, expiresMs, isProven, hash: _, ...user } = row;
    return { user, begunMs, expiresMs, isProven, token: null };
  });
}

export async function signInsSeen(database: Database, hashes: Buffer[], nowMs: number, apartMs: number): Promise<void> {
  const s = database.schema;
  await database.query(
    "access-sign-ins-seen",
    `update ${s}.sign_in set seen_ms = $2 where hash = any($1) and coalesce(seen_ms, created_ms) <= $3`,
    [hashes, Math.round(nowMs), Math.round(nowMs - apartMs)],
  );
}

export function signIns(
  database: Database,
  userId: number,
  { beforeId, limit }: { beforeId: number; limit: number },
  idleMs: number,
  nowMs: number,
): Promise<SignIn[]> {
  const s = database.schema;
  return database.query<SignIn>(
    "access-sign-ins",
    `select i.id as "signInId", i.created_ms as "begunMs", coalesce(i.seen_ms, i.created_ms) as "seenMs",
            ${endsSql("$2")} as "expiresMs", i.address, i.agent, i.hash
     from ${s}.sign_in i where i.user_id = $1 and ${endsSql("$2")} > $3 and i.id < $4 order by i.id desc limit $5`,
    [userId, idleMs, Math.round(nowMs), beforeId, limit],
  );
}

export function endSignIns(
  database: Database,
  { userId, name }: Pick<User, "userId" | "name">,
  which: EndedSignIns,
  { author, reason, nowMs }: Change,
): Promise<number> {
  const s = database.schema;
  return database.transaction(async (client) => {
    const { rows } = await client.query(
      `delete from ${s}.sign_in where user_id = $1 and ($2::bigint is null or id = $2) and hash is distinct from $3 returning id`,
      "signInId" in which ? [userId, which.signInId, null] : [userId, null, which.keeping],
    );
    if (rows.length > 0) {
      const before = { signIns: rows.map(({ id }) => Number(id)) };
      const entry = { atMs: nowMs, who: author, act: "end sign-ins", about: "user" as const, named: name };
      await audited(client, s, { ...entry, before, after: null, why: reason });
    }
    return rows.length;
  });
}
