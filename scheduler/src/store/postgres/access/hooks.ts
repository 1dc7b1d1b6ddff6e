import type { Hook } from "../../../access/hooks/hook.ts";
import { type HookStore, hookUnknown, isForHook, type KeyedHook } from "../../../access/hooks/hook-store.ts";
import type { Change, SqlClient } from "../../../base/change.ts";
import { CarillonError } from "../../../base/errors.ts";
import { type Json, sortedJson } from "../../../base/json.ts";
import { limits } from "../../../base/limits.ts";
import { namespaceOf } from "../../../base/namespace.ts";
import type { Database } from "../database.ts";
import { inNamespacesSql, namespaceSql } from "../tasks/task-filter.ts";
import { markItem } from "./applied-items.ts";
import { audited } from "./audit.ts";

const fields = `h.name, h.version, h.content, h.author, h.reason, h.changed_ms as "changedMs", h.bundle`;

export function hookStore(database: Database): HookStore {
  const s = database.schema;
  return {
    list: (afterName, namespaces, limit) =>
      database.query<Hook>(
        "hook-list",
        `select ${fields} from ${s}.hook h where deleted_ms is null and name collate "C" > $1 and ${inNamespacesSql("name", "$2::text[]")}
         order by name collate "C" limit $3`,
        [afterName, namespaces, limit],
      ),

    async find(name) {
      const [found] = await database.query<Hook>(
        "hook-find",
        `select ${fields} from ${s}.hook h where deleted_ms is null and name = $1`,
        [name],
      );
      if (!found) throw hookUnknown(name);
      return found;
    },

    set: (name, content, change, ifVersion) => set(database, name, content, change, ifVersion),

    remove: (name, change, ifVersion) =>
      database.transaction(async (client) => {
        const before = await locked(client, s, name);
        if (!before) throw hookUnknown(name);
        checkVersion(name, before, ifVersion);
        await client.query(`update ${s}.hook set deleted_ms = $2, bundle = null, applied = null where name = $1`, [
          name,
          Math.round(change.nowMs),
        ]);
        await put(client, s, change, { act: "remove", named: name, before, after: null });
      }),

    async keyed() {
      const rows = await database.query<Hook & Partial<KeyedSecret>>(
        "hook-keyed",
        `select ${fields}, c.version as "secretVersion", c.tasks, v.key_id as "keyId", v.wrapped, v.sealed
         from ${s}.hook h
         left join ${s}.secret c on c.name = h.content->>'secret' and c.removed_ms is null
         left join ${s}.secret_version v on v.secret_id = c.id and v.version = c.version
         where h.deleted_ms is null`,
        [],
      );
      return rows.map(({ secretVersion, tasks, keyId, wrapped, sealed, ...hook }): KeyedHook => {
        const isThere = secretVersion && keyId && wrapped && sealed && isForHook(hook.content, tasks ?? null);
        const place = { name: hook.content.secret, version: secretVersion as number };
        return { ...hook, sealed: isThere ? { ...place, keyId, wrapped, sealed } : null };
      });
    },
  };
}

interface KeyedSecret {
  secretVersion: number;
  tasks: string[] | null;
  keyId: string;
  wrapped: Buffer;
  sealed: Buffer;
}

function set(
  database: Database,
  name: string,
  content: Hook["content"],
  change: Change,
  ifVersion: number | null,
): Promise<Hook> {
  const s = database.schema;
  return database.transaction(async (client) => {
    // One change at a time, so that the number of hooks stays within its limit.
    await client.query(`lock table ${s}.hook in share row exclusive mode`);
    const before = await locked(client, s, name);
    checkVersion(name, before, ifVersion);
    await checkSecretOf(client, s, content);
    if (before && sortedJson(before.content) === sortedJson(content))
      return markItem(client, s, { kind: "hook", stored: before, isNew: false }, change);
    if (!before) await checkRoom(client, s, name);
    const { rows } = await client.query(
      `insert into ${s}.hook as h (name, version, content, author, reason, changed_ms) values ($1, 1, $2, $3, $4, $5)
       on conflict (name) do update set version = h.version + 1, content = excluded.content, author = excluded.author,
         reason = excluded.reason, changed_ms = excluded.changed_ms, deleted_ms = null,
         bundle = case when h.deleted_ms is null then h.bundle end, applied = case when h.deleted_ms is null then h.applied end
       returning ${fields}`,
      [name, JSON.stringify(content), change.author, change.reason, Math.round(change.nowMs)],
    );
    const after = rows[0] as unknown as Hook;
    await put(client, s, change, { act: before ? "edit" : "create", named: name, before, after });
    return markItem(client, s, { kind: "hook", stored: after, isNew: !before }, change);
  });
}

/** @throws OPTION_INVALID if the store or the hook's namespace has the most hooks already */
async function checkRoom(client: SqlClient, s: string, name: string): Promise<void> {
  const namespace = namespaceOf(name);
  const { rows } = await client.query(
    `select count(*)::int as every, (count(*) filter (where ${namespaceSql("name")} = $1))::int as own
     from ${s}.hook where deleted_ms is null`,
    [namespace],
  );
  const [{ every, own }] = rows as unknown as [{ every: number; own: number }];
  const { hooks, hooksOfNamespace } = limits;
  if (every < hooks && own < hooksOfNamespace) return;
  const where = own < hooksOfNamespace ? `${hooks} hooks` : `${hooksOfNamespace} hooks in the namespace ${namespace}`;
  throw new CarillonError("OPTION_INVALID", `there are ${where} already`, {
    hint: "Remove some. A hook can run several tasks, by a value of the request.",
  });
}

/** Reads a hook in the transaction of a change of it; undefined if there is none. */
async function locked(client: SqlClient, s: string, name: string): Promise<Hook | undefined> {
  const { rows } = await client.query(
    `select ${fields} from ${s}.hook h where deleted_ms is null and name = $1 for update`,
    [name],
  );
  return rows[0] as unknown as Hook | undefined;
}

function checkVersion(name: string, before: Hook | undefined, ifVersion: number | null): void {
  const version = before?.version ?? 0;
  if (ifVersion === null || ifVersion === version) return;
  throw new CarillonError(
    "HOOK_STALE",
    `the hook ${name} is at version ${version}; this change was made from version ${ifVersion}`,
    { hint: "Read it again, look at what changed, and repeat the change." },
  );
}

async function checkSecretOf(client: SqlClient, s: string, content: Hook["content"]): Promise<void> {
  const { secret } = content;
  const { rows } = await client.query(`select tasks from ${s}.secret where name = $1 and removed_ms is null`, [secret]);
  const [row] = rows as unknown as { tasks: string[] | null }[];
  // The error is the same for a secret that does not exist, so that an admin of one namespace cannot find out which secrets exist.
  if (row && isForHook(content, row.tasks)) return;
  throw new CarillonError("SECRET_FORBIDDEN", `there is no secret ${secret} that is for the hook's tasks`, {
    path: "secret",
    hint: "Store it with the hook's tasks among its tasks: carillon secrets set NAME --task TASK.",
  });
}

function put(
  client: SqlClient,
  s: string,
  { author, reason, nowMs }: Change,
  { before, after, ...entry }: { act: string; named: string; before: Hook | undefined; after: Hook | null },
): Promise<void> {
  const contents = { before: (before?.content ?? null) as Json, after: (after?.content ?? null) as Json };
  return audited(client, s, { ...entry, ...contents, atMs: nowMs, who: author, about: "hook", why: reason });
}
