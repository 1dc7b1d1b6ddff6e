import type { SecretKeys } from "../../access/secrets/secret-keys.ts";
import type { SecretRecord, SecretVersion } from "../../access/secrets/secret-store.ts";
import { Secrets } from "../../access/secrets/secrets.ts";
import type { secretRoutes } from "../../api/contract/secrets.ts";
import { isoTime } from "../../api/run-json.ts";
import { limits } from "../../base/limits.ts";
import type { Store } from "../../store/store.ts";
import type { Some } from "../call.ts";
import { changeOf } from "./changes.ts";
import { nameCursor, pageOf } from "./pages.ts";

const asVersion = ({ version, keyId, author, reason, changedMs }: SecretRecord | SecretVersion) => ({
  version,
  key: keyId,
  author,
  reason,
  changed: isoTime(changedMs),
});
const asSecret = (record: SecretRecord) => ({ name: record.name, ...asVersion(record), tasks: record.tasks });

export function secretCalls({ secrets: store }: Store, keys: SecretKeys): Some<keyof typeof secretRoutes> {
  const secrets = new Secrets(store, keys);
  return {
    async listSecrets({ cursor, limit }) {
      const rows = await store.list(nameCursor(cursor), limit + 1);
      return pageOf(rows, limit, asSecret, ({ name }) => [name]);
    },
    async getSecret({ secret }) {
      const record = await store.find(secret);
      const versions = await store.versions(secret);
      return { ...asSecret(record), versions: versions.map((one) => ({ ...asVersion(one), kept: one.kept })) };
    },
    setSecret: async ({ secret, value, tasks, reason }, call) =>
      asSecret(await secrets.set(secret, value, tasks, changeOf(call, reason))),
    async removeSecret({ secret, reason }, call) {
      await store.remove(secret, changeOf(call, reason));
      return undefined;
    },
    async rewrapSecrets({ reason }, call) {
      return { key: keys.present, ...(await secrets.rewrap(changeOf(call, reason), limits.secretsAtOnce)) };
    },
  };
}
