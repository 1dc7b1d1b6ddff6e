import { createHash, randomBytes } from "node:crypto";
import type { Carillon } from "carillon";

/** Stores a worker key in the form that `carillon keys create` makes. @returns the key */
export async function makeKey(tower: Carillon): Promise<string> {
  const { store } = await tower.open();
  const secret = randomBytes(32).toString("base64url");
  const hash = createHash("sha256").update(secret).digest();
  const { keyId } = await store.workers.createKey({ name: "bench", groups: ["default"], hash, createdBy: "bench" }, 0);
  return `ck_${keyId}_${secret}`;
}
