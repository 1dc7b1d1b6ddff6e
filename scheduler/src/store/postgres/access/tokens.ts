import { type Credential, type NewToken, type Token, tokenUnknown, type User } from "../../../access/access-store.ts";
import type { Change, SqlClient } from "../../../base/change.ts";
import { CarillonError } from "../../../base/errors.ts";
import type { Json } from "../../../base/json.ts";
import type { Database } from "../database.ts";
import { audited } from "./audit.ts";
import { userFields } from "./users.ts";

const tokenJson = ({ name, user, role, scopes, namespaces, expiresMs }: Token): Json => ({
  name,
  user,
  role,
  scopes,
  expiresMs,
  ...(namespaces === null ? {} : { namespaces }),
});

const tokenFields = `t.id as "tokenId", t.name, u.name as user, t.user_id as "userId", t.role, t.scopes, t.namespaces, t.created_ms as "createdMs",
  t.expires_ms as "expiresMs", t.revoked_ms as "revokedMs"`;

const tokensFrom = (s: string) => `${s}.token t join ${s}.user_account u on u.id = t.user_id`;

export function tokens(database: Database, userId: number | null, beforeId: number, limit: number): Promise<Token[]> {
  const s = database.schema;
  return database.query<Token>(
    "access-tokens",
    `select ${tokenFields} from ${tokensFrom(s)} where ($1::int is null or t.user_id = $1) and t.id < $2 order by t.id desc limit $3`,
    [userId, Math.min(beforeId, 2 ** 31 - 1), limit],
  );
}

export async function tokenByName(database: Database, userId: number, name: string): Promise<Token> {
  const s = database.schema;
  const [token] = await database.query<Token>(
    "access-token",
    `select ${tokenFields} from ${tokensFrom(s)} where t.user_id = $1 and t.name = $2 order by t.id desc limit 1`,
    [userId, name],
  );
  if (token) return token;
  throw tokenUnknown(name);
}

export function createToken(
  database: Database,
  { userId, name, hash, role, scopes, namespaces = null, expiresMs, by = null }: NewToken,
  { author, reason, nowMs }: Change,
): Promise<Token> {
  const s = database.schema;
  return database.transaction(async (client) => {
    // The rows of the user and of the token that creates this one are locked until the new token exists, so that a later change that ends
    // one of them also ends the new token.
    const { rows: users } = await client.query(
      `select from ${s}.user_account where id = $1 and removed_ms is null and disabled_ms is null for share`,
      [userId],
    );
    const { rows: makers } = await client.query(
      `select id from ${s}.token where user_id = $1 and name = $2 and revoked_ms is null for share`,
      [by?.userId, by?.token],
    );
    if (users.length === 0 || (by !== null && makers.length === 0))
      throw new CarillonError("SIGN_IN_NEEDED", "the token's user, or the token that makes it, has been locked out", {
        hint: "Sign in again, or use a token that was not revoked.",
      });
    const { rows } = await client.query(
      `insert into ${s}.token (user_id, name, hash, role, scopes, created_ms, expires_ms, namespaces, made_by)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
       on conflict (user_id, name) where revoked_ms is null do nothing returning id`,
      [userId, name, hash, role, scopes, Math.round(nowMs), Math.round(expiresMs), namespaces, makers[0]?.id ?? null],
    );
    if (!rows[0]) {
      throw new CarillonError("TOKEN_NAME_TAKEN", `there is a token ${name} already`, {
        hint: "Choose another name, or revoke the old one first.",
      });
    }
    const token = await read(client, s, rows[0].id as number);
    await audited(client, s, {
      atMs: nowMs,
      who: author,
      act: "create",
      about: "token",
      named: `${token.user}/${name}`,
      before: null,
      after: tokenJson(token),
      why: reason,
    });
    return token;
  });
}

export function revokeToken(
  database: Database,
  userId: number,
  name: string,
  { author, reason, nowMs }: Change,
): Promise<Token> {
  const s = database.schema;
  return database.transaction(async (client) => {
    const { rows } = await client.query(
      `select id, revoked_ms from ${s}.token where user_id = $1 and name = $2 order by id desc limit 1 for update`,
      [userId, name],
    );
    const [row] = rows;
    if (!row) throw tokenUnknown(name);
    if (row.revoked_ms !== null) return read(client, s, row.id as number);
    // The update is repeated until it finds no token, because a token that is being ended may have created another in the meantime.
    for (let ended = [row.id as number]; ended.length > 0; ) {
      const { rows: found } = await client.query(
        `with recursive line (id) as (select $1::int union select t.id from ${s}.token t join line on t.made_by = line.id)
         update ${s}.token t set revoked_ms = $2 from line where t.id = line.id and t.revoked_ms is null returning t.id`,
        [row.id, Math.round(nowMs)],
      );
      ended = found.map(({ id }) => id as number).sort((a, b) => a - b);
      for (const id of ended) {
        const token = await read(client, s, id);
        await audited(client, s, {
          atMs: nowMs,
          who: author,
          act: "revoke",
          about: "token",
          named: `${token.user}/${token.name}`,
          before: tokenJson(token),
          after: null,
          why: reason,
        });
      }
    }
    return read(client, s, row.id as number);
  });
}

export async function tokensOf(
  database: Database,
  tokenIds: number[],
): Promise<((Credential & { hash: Buffer }) | null)[]> {
  const s = database.schema;
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
    `select ${userFields(s)}, t.hash, t.id as "tokenId", t.name as "tName", t.role as "tRole", t.scopes, t.namespaces,
            t.expires_ms as "expiresMs", t.revoked_ms as "revokedMs"
     from ${tokensFrom(s)} where t.id = any($1) and u.removed_ms is null`,
    [tokenIds],
  );
  return tokenIds.map((wanted) => {
    const row = rows.find(({ tokenId }) => tokenId === wanted);
    if (!row) return null;
    const { hash, tokenId: _, tName: name, tRole: role, scopes, namespaces, expiresMs, revokedMs, ...user } = row;
    return {
      user,
      hash,
      begunMs: null,
      expiresMs,
      isProven: false,
      token: { name, role, scopes, namespaces, revokedMs },
    };
  });
}

async function read(client: SqlClient, s: string, tokenId: number): Promise<Token> {
  const { rows } = await client.query(`select ${tokenFields} from ${tokensFrom(s)} where t.id = $1`, [tokenId]);
  return rows[0] as unknown as Token;
}
