import { CarillonError } from "../errors.ts";
import type { Json } from "../json.ts";
import { defaultNamespace, namespaceOf } from "../namespace.ts";
import type { SecretRecord, SecretStore, SecretVersion } from "../secret-store.ts";
import type { Change, SqlClient } from "../store.ts";
import { audited } from "./audit.ts";
import type { Database } from "./database.ts";

interface Present {
  id: number;
  version: number;
  tasks: string[] | null;
  removed_ms: number | null;
}

export function secretStore(database: Database): SecretStore {
  const s = database.schema;
  const recordSql = `select s.name, s.version, s.tasks, v.key_id as "keyId", v.author, v.reason, v.changed_ms as "changedMs"
    from ${s}.secret s join ${s}.secret_version v on v.secret_id = s.id and v.version = s.version where s.removed_ms is null`;

  const put = (client: SqlClient, act: string, named: string, before: Json, after: Json, change: Change) =>
    audited(client, s, {
      ...{ atMs: change.nowMs, who: change.author, act, about: "secret" as const, named },
      ...{ before, after, why: change.reason },
    });

  return {
    set: (name, seal, tasks, change) =>
      database.persist(() =>
        database.transaction(async (client) => {
          // Made first and locked then: two that make it at once agree on who was first.
          await client.query(`insert into ${s}.secret (name, version) values ($1, 0) on conflict (name) do nothing`, [
            name,
          ]);
          const { rows } = await client.query(
            `select id, version, tasks, removed_ms from ${s}.secret where name = $1 for update`,
            [name],
          );
          const row = rows[0] as unknown as Present;
          const there = row.version > 0 && row.removed_ms === null;
          const forTasks = tasks === undefined ? (there ? row.tasks : null) : tasks;
          // Numbers go on after a removal: a version never means two values.
          const version = row.version + 1;
          const { keyId, wrapped, sealed } = seal(version);
          await client.query(
            `insert into ${s}.secret_version (secret_id, version, key_id, wrapped, sealed, author, reason, changed_ms)
             values ($1, $2, $3, $4, $5, $6, $7, $8)`,
            [row.id, version, keyId, wrapped, sealed, change.author, change.reason, Math.round(change.nowMs)],
          );
          await client.query(
            `update ${s}.secret_version set wrapped = null, sealed = null where secret_id = $1 and version < $2 and sealed is not null`,
            [row.id, there ? version - 1 : version],
          );
          await client.query(`update ${s}.secret set version = $2, tasks = $3, removed_ms = null where id = $1`, [
            row.id,
            version,
            forTasks,
          ]);
          const before = there ? { version: row.version, tasks: row.tasks } : null;
          await put(client, there ? "edit" : "create", name, before, { version, tasks: forTasks, key: keyId }, change);
          const { author, reason, nowMs } = change;
          return { name, version, tasks: forTasks, keyId, author, reason, changedMs: Math.round(nowMs) };
        }),
      ),

    list: (afterName, limit) =>
      database.query<SecretRecord>("secret-list", `${recordSql} and s.name > $1 order by s.name limit $2`, [
        afterName,
        limit,
      ]),

    async find(name) {
      const [row] = await database.query<SecretRecord>("secret-find", `${recordSql} and s.name = $1`, [name]);
      if (!row) throw unknown(name);
      return row;
    },

    versions: (name) =>
      database.query<SecretVersion>(
        "secret-versions",
        `select v.version, v.key_id as "keyId", v.author, v.reason, v.changed_ms as "changedMs", v.sealed is not null as kept
         from ${s}.secret s join ${s}.secret_version v on v.secret_id = s.id
         where s.name = $1 and s.removed_ms is null order by v.version desc limit 1000`,
        [name],
      ),

    remove: (name, change) =>
      database.transaction(async (client) => {
        const { rows } = await client.query(
          `update ${s}.secret set removed_ms = $2 where name = $1 and removed_ms is null returning id, version, tasks`,
          [name, Math.round(change.nowMs)],
        );
        const row = rows[0] as unknown as Present | undefined;
        if (!row) throw unknown(name);
        await client.query(
          `update ${s}.secret_version set wrapped = null, sealed = null where secret_id = $1 and sealed is not null`,
          [row.id],
        );
        await put(client, "remove", name, { version: row.version, tasks: row.tasks }, null, change);
      }),

    rewrap: (keyId, wrap, limit, change) =>
      database.persist(() =>
        database.transaction(async (client) => {
          const { rows } = await client.query(
            `select s.name, v.secret_id, v.version, v.key_id, v.wrapped from ${s}.secret_version v join ${s}.secret s on s.id = v.secret_id
             where v.sealed is not null and v.key_id <> $1 order by v.secret_id, v.version limit $2 for update of s, v`,
            [keyId, limit],
          );
          for (const { name, secret_id, version, key_id, wrapped } of rows as unknown as Wrapped[]) {
            const fresh = wrap({ keyId: key_id, wrapped }, { name, version });
            await client.query(
              `update ${s}.secret_version set key_id = $3, wrapped = $4 where secret_id = $1 and version = $2`,
              [secret_id, version, fresh.keyId, fresh.wrapped],
            );
            await put(client, "rewrap", name, { version, key: key_id }, { version, key: fresh.keyId }, change);
          }
          const { rows: rest } = await client.query(
            `select count(*)::int as left from ${s}.secret_version where sealed is not null and key_id <> $1`,
            [keyId],
          );
          return { rewrapped: rows.length, left: Number(rest[0]?.left) };
        }),
      ),

    async sealedFor({ runId, fence }, name, version) {
      const [row] = await database.query<Found>(
        "secret-for",
        `select t.name as task, s.version as present, s.tasks, v.version, v.key_id as "keyId", v.wrapped, v.sealed
         from ${s}.run r join ${s}.task t on t.id = r.task_id
         left join ${s}.secret s on s.name = $3 and s.removed_ms is null
         left join ${s}.secret_version v on v.secret_id = s.id and v.version = coalesce($4, s.version) and v.sealed is not null
         where r.id = $1 and r.fence = $2 and r.state = 3`,
        [runId, fence, name, version],
      );
      if (!row)
        throw new CarillonError("FENCE_STALE", `run ${runId} is no longer this worker's, so it is given no secret`);
      if (row.present === null) throw unknown(name);
      // Of other namespaces it must be named: whoever may define tasks in one could have every secret otherwise.
      const isMeant = row.tasks?.includes(row.task) ?? namespaceOf(row.task) === defaultNamespace;
      if (!isMeant) throw forbidden(name, row.task);
      if (row.sealed === null) throw unknown(name, version);
      return { name, version: row.version, keyId: row.keyId, wrapped: row.wrapped, sealed: row.sealed };
    },
  };
}

interface Wrapped {
  name: string;
  secret_id: number;
  version: number;
  key_id: string;
  wrapped: Buffer;
}

interface Found {
  task: string;
  present: number | null;
  tasks: string[] | null;
  version: number;
  keyId: string;
  wrapped: Buffer;
  sealed: Buffer | null;
}

function unknown(name: string, version: number | null = null): CarillonError {
  const which = version === null ? "" : `, or its version ${version} is destroyed`;
  return new CarillonError("SECRET_UNKNOWN", `there is no secret ${JSON.stringify(name)}${which}`, {
    hint: "See `carillon secrets list`; store it with `carillon secrets set`.",
  });
}

const forbidden = (name: string, task: string) =>
  new CarillonError("SECRET_FORBIDDEN", `secret ${name} is not for task ${task}`, {
    hint: "Set it with this task among its tasks.",
  });
