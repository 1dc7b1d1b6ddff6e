import { hashOfSecret, keyEndMs, keyText, makeSecret } from "../../access/worker-key.ts";
import type { WorkerKey } from "../../access/worker-store.ts";
import { iso, isoTime } from "../../api/run-json.ts";
import type { Duration } from "../../base/duration.ts";
import { limits } from "../../base/limits.ts";
import type { Store } from "../../store/store.ts";
import { checkName } from "../../task/names.ts";
import type { Some } from "../call.ts";
import { changeOf } from "./changes.ts";
import { numberCursor, pageOf } from "./pages.ts";

const asKey = ({ name, groups, createdMs, createdBy, expiresMs, revokedMs }: WorkerKey) => ({
  name,
  groups,
  created: isoTime(createdMs),
  by: createdBy,
  expires: iso(expiresMs),
  revoked: iso(revokedMs),
});

/** @param onRevoked called after a key was revoked, before the request is answered */
export function workerKeyCalls(
  store: Store,
  onRevoked: (keyId: number) => void,
): Some<"listWorkerKeys" | "createWorkerKey" | "getWorkerKey" | "revokeWorkerKey"> {
  return {
    async listWorkerKeys({ cursor, limit }, { reach }) {
      const before = numberCursor(cursor);
      const rows = (await store.workers.keys()).filter(({ keyId, name }) => keyId < before && reach.has(name));
      return pageOf(rows, limit, asKey, ({ keyId }) => [keyId]);
    },

    async createWorkerKey({ name, groups = ["default"], expiresIn, reason }, call) {
      checkName("a key's name", name, 100);
      for (const group of groups) checkName("a group", group, limits.groupNameLength);
      for (const named of [name, ...groups]) call.reach.check(named);
      const secret = makeSecret();
      const { author, reason: why } = changeOf(call, reason);
      const expiresMs = keyEndMs(expiresIn as Duration | undefined, call.nowMs);
      const own = { name, groups: [...new Set(groups)], hash: hashOfSecret(secret), expiresMs };
      const key = { ...own, createdBy: author, reason: why };
      const made = await store.workers.createKey(key, call.nowMs);
      return { ...asKey(made), secret: keyText(made.keyId, secret) };
    },

    getWorkerKey: async ({ key }) => asKey(await store.workers.keyByName(key)),

    async revokeWorkerKey({ key, reason }, call) {
      const revoked = await store.workers.revokeKey(key, changeOf(call, reason));
      onRevoked(revoked.keyId);
      return asKey(revoked);
    },
  };
}
