import { createHash, randomBytes } from "node:crypto";
import type { Carillon } from "carillon";

/** Creates a user and an API token of that user, by default with the operator role, which may enqueue. @returns the token */
export async function makeToken(
  tower: Carillon,
  name = "bench",
  role: "operator" | "admin" = "operator",
): Promise<string> {
  const { store, nowMs } = await tower.open();
  const secret = randomBytes(32).toString("base64url");
  const change = { author: "bench", reason: "", nowMs: nowMs() };
  const user = await store.access.createUser({ name, hash: "none", role }, change);
  const hash = createHash("sha256").update(secret).digest();
  const token = { userId: user.userId, name: "bench", hash, role, scopes: null, expiresMs: 9e12 };
  const { tokenId } = await store.access.createToken(token, change);
  return `ct_${tokenId}_${secret}`;
}
