import type { AccessStore } from "../../../access/access-store.ts";
import type { Database } from "../database.ts";
import { endSignIns, signIn, signIns, signInsOf, signInsSeen, signOut } from "./sign-ins.ts";
import { createToken, revokeToken, tokenByName, tokens, tokensOf } from "./tokens.ts";
import { changeUser, createFirst, createUser, providedUser, rehash, userByName, users } from "./users.ts";

/** How long the response to a request with an idempotency key is stored, in ms. */
const answerKeptMs = 86_400_000;

export function accessStore(database: Database): AccessStore {
  return {
    users: (afterName, limit) => users(database, afterName, limit),
    userByName: (name) => userByName(database, name),
    createUser: (user, change) => createUser(database, user, change),
    providedUser: (given, change) => providedUser(database, given, change),
    createFirst: (user, nowMs) => createFirst(database, user, nowMs),
    changeUser: (name, given, change) => changeUser(database, name, given, change),
    rehash: (userId, from, to) => rehash(database, userId, from, to),
    signIn: (given, nowMs) => signIn(database, given, nowMs),
    signOut: (hash) => signOut(database, hash),
    signInsOf: (hashes, idleMs) => signInsOf(database, hashes, idleMs),
    signInsSeen: (hashes, nowMs, apartMs) => signInsSeen(database, hashes, nowMs, apartMs),
    signIns: (userId, place, idleMs, nowMs) => signIns(database, userId, place, idleMs, nowMs),
    endSignIns: (user, which, change) => endSignIns(database, user, which, change),
    tokens: (userId, beforeId, limit) => tokens(database, userId, beforeId, limit),
    tokenByName: (userId, name) => tokenByName(database, userId, name),
    createToken: (token, change) => createToken(database, token, change),
    revokeToken: (userId, name, change) => revokeToken(database, userId, name, change),
    tokensOf: (tokenIds) => tokensOf(database, tokenIds),
    sweep: (nowMs) => sweep(database, nowMs),
  };
}

async function sweep(database: Database, nowMs: number): Promise<void> {
  const s = database.schema;
  await database.query("access-sweep-sign-ins", `delete from ${s}.sign_in where expires_ms < $1`, [Math.round(nowMs)]);
  await database.query("access-sweep-answers", `delete from ${s}.idempotent_answer where begun_ms < $1`, [
    Math.round(nowMs - answerKeptMs),
  ]);
}
