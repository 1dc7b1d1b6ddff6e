import type { FactorGuess, FactorState, KeptFactor, SecondFactorStore } from "../../../access/second-factor-store.ts";
import type { SqlClient } from "../../../base/change.ts";
import { CarillonError } from "../../../base/errors.ts";
import type { Json } from "../../../base/json.ts";
import type { Database } from "../database.ts";
import { audited } from "./audit.ts";

/**
 * The maximum number of wrong codes per user in each window, from all addresses together. Only someone with the user's password can enter
 * codes, so a stranger cannot lock a user out by wrong codes.
 */
const guessesMost = 10;
const windowMs = 60 * 60_000;

const columns = (kept: KeptFactor) =>
  "plain" in kept ? [kept.plain, null, null, null] : [null, kept.keyId, kept.wrapped, kept.sealed];

interface FactorRow {
  plain: string | null;
  keyId: string;
  wrapped: Buffer;
  sealed: Buffer;
  isConfirmed: boolean;
}

export function secondFactorStore(database: Database): SecondFactorStore {
  const s = database.schema;
  return {
    async find(userId) {
      const [row] = await database.query<FactorState>(
        "factor",
        `select f.confirmed_ms as "enrolledMs", (select count(*) from ${s}.recovery_code r where r.user_id = f.user_id) as "recoveryCodes"
         from ${s}.second_factor f where user_id = $1 and confirmed_ms is not null`,
        [userId],
      );
      return row ?? null;
    },

    async begin(userId, kept, nowMs) {
      const made = await database.query(
        "factor-begin",
        `insert into ${s}.second_factor as f (user_id, plain, key_id, wrapped, sealed, begun_ms) values ($1, $2, $3, $4, $5, $6)
         on conflict (user_id) do update set plain = $2, key_id = $3, wrapped = $4, sealed = $5, begun_ms = $6, last_step = 0
         where f.confirmed_ms is null returning user_id`,
        [userId, ...columns(kept), Math.round(nowMs)],
      );
      if (made.length === 0)
        throw new CarillonError("SECOND_FACTOR_TAKEN", "there is a second factor already", {
          hint: "Remove it first, with a code of it.",
        });
    },

    guess: (userId, nowMs) => guess(database, userId, nowMs),

    async accept(userId, step) {
      const rows = await database.query(
        "factor-accept",
        `update ${s}.second_factor set last_step = $2, guesses = 0 where user_id = $1 and last_step < $2 returning user_id`,
        [userId, step],
      );
      return rows.length > 0;
    },

    acceptRecovery({ userId, name }, hash, { author, reason, nowMs }) {
      return database.transaction(async (client) => {
        const { rows } = await client.query(
          `delete from ${s}.recovery_code where user_id = $1 and hash = $2 returning user_id`,
          [userId, hash],
        );
        if (rows.length === 0) return false;
        await client.query(`update ${s}.second_factor set guesses = 0 where user_id = $1`, [userId]);
        const { rows: left } = await client.query(
          `select count(*)::int as left from ${s}.recovery_code where user_id = $1`,
          [userId],
        );
        const after: Json = { recoveryCodes: Number(left[0]?.left) };
        const entry = { atMs: nowMs, who: author, act: "use recovery code", about: "user" as const, named: name };
        await audited(client, s, { ...entry, before: null, after, why: reason });
        return true;
      });
    },

    confirm({ userId, name }, step, recovery, keeping, { author, reason, nowMs }) {
      return database.transaction(async (client) => {
        const { rows } = await client.query(
          `update ${s}.second_factor set confirmed_ms = $2, last_step = $3, guesses = 0
           where user_id = $1 and confirmed_ms is null and last_step < $3 returning user_id`,
          [userId, Math.round(nowMs), step],
        );
        if (rows.length === 0) return false;
        await client.query(`delete from ${s}.recovery_code where user_id = $1`, [userId]);
        await client.query(`insert into ${s}.recovery_code (user_id, hash) select $1, * from unnest($2::bytea[])`, [
          userId,
          recovery,
        ]);
        await client.query(`update ${s}.sign_in set second_factor = true where user_id = $1 and hash = $2`, [
          userId,
          keeping,
        ]);
        await client.query(`delete from ${s}.sign_in where user_id = $1 and hash is distinct from $2`, [
          userId,
          keeping,
        ]);
        const entry = { atMs: nowMs, who: author, act: "add second factor", about: "user" as const, named: name };
        await audited(client, s, { ...entry, before: null, after: { recoveryCodes: recovery.length }, why: reason });
        return true;
      });
    },

    remove({ userId, name }, { author, reason, nowMs }) {
      return database.transaction(async (client) => {
        if (!(await forgetFactor(client, s, userId))) return false;
        await client.query(`update ${s}.sign_in set second_factor = false where user_id = $1`, [userId]);
        const entry = { atMs: nowMs, who: author, act: "remove second factor", about: "user" as const, named: name };
        await audited(client, s, { ...entry, before: null, after: null, why: reason });
        return true;
      });
    },
  };
}

/** Removes a user's second factor and recovery codes. @returns false if the user had no second factor */
export async function forgetFactor(client: SqlClient, s: string, userId: number): Promise<boolean> {
  const { rows } = await client.query(`delete from ${s}.second_factor where user_id = $1 returning user_id`, [userId]);
  await client.query(`delete from ${s}.recovery_code where user_id = $1`, [userId]);
  return rows.length > 0;
}

async function guess(database: Database, userId: number, nowMs: number): Promise<FactorGuess | null> {
  const s = database.schema;
  const now = Math.round(nowMs);
  const [row] = await database.query<FactorRow>(
    "factor-guess",
    `update ${s}.second_factor set guesses = case when guesses_since_ms <= $2 - $3::bigint then 1 else guesses + 1 end,
       guesses_since_ms = case when guesses_since_ms <= $2 - $3::bigint then $2 else guesses_since_ms end
     where user_id = $1 and (guesses < $4 or guesses_since_ms <= $2 - $3::bigint)
     returning plain, key_id as "keyId", wrapped, sealed, confirmed_ms is not null as "isConfirmed"`,
    [userId, now, windowMs, guessesMost],
  );
  if (row) {
    const { plain, keyId, wrapped, sealed, isConfirmed } = row;
    return { kept: plain === null ? { keyId, wrapped, sealed } : { plain }, isConfirmed };
  }
  const [held] = await database.query<{ until: number }>(
    "factor-held",
    `select guesses_since_ms + $2::bigint as until from ${s}.second_factor where user_id = $1`,
    [userId, windowMs],
  );
  if (!held) return null;
  throw new CarillonError("TOO_MANY_ATTEMPTS", "too many codes of this user were wrong", {
    hint: `Wait ${Math.max(1, Math.ceil((held.until - now) / 60_000))} min, or ask an admin to remove the second factor.`,
    retryAfterMs: Math.max(1_000, held.until - now),
  });
}
