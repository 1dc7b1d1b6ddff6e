import { factorPlace } from "../../../access/second-factor-store.ts";
import type { Sealed, SecretPlace } from "../../../access/secrets/secret-keys.ts";
import type { SecretRecord, SecretStore, SecretVersion } from "../../../access/secrets/secret-store.ts";
import type { Change, SqlClient } from "../../../base/change.ts";
import { CarillonError } from "../../../base/errors.ts";
import type { Json } from "../../../base/json.ts";
import { defaultNamespace, namespaceOf } from "../../../base/namespace.ts";
import type { AskingRun } from "../../../run/flow.ts";
import type { Database } from "../database.ts";
import { runState } from "../states.ts";
import { audited } from "./audit.ts";

interface Present {
  id: number;
  version: number;
  /** The number that the next version will get. */
  next: number;
  tasks: string[] | null;
  removed_ms: number | null;
}

const recordSql = (
  s: string,
) => `select s.name, s.version, s.tasks, v.key_id as "keyId", v.author, v.reason, v.changed_ms as "changedMs"
  from ${s}.secret s join ${s}.secret_version v on v.secret_id = s.id and v.version = s.version where s.removed_ms is null`;

interface Told {
  act: string;
  named: string;
  before: Json;
  after: Json;
}

const put = (client: SqlClient, s: string, change: Change, { act, named, before, after }: Told) =>
  audited(client, s, {
    atMs: change.nowMs,
    who: change.author,
    act,
    about: "secret" as const,
    named,
    before,
    after,
    why: change.reason,
  });

export function secretStore(database: Database): SecretStore {
  return {
    set: (name, seal, tasks, change) => set(database, name, seal, tasks, change),
    list: (afterName, limit) => list(database, afterName, limit),
    find: (name) => find(database, name),
    versions: (name) => versions(database, name),
    remove: (name, change) => remove(database, name, change),
    rewrap: (keyId, wrap, limit, change) => rewrap(database, keyId, wrap, limit, change),
    sealedFor: (asking, name, version) => sealedFor(database, asking, name, version),
  };
}

function set(
  database: Database,
  name: string,
  seal: (version: number) => Sealed,
  tasks: string[] | null | undefined,
  change: Change,
): Promise<SecretRecord> {
  const s = database.schema;
  return database.persist(() =>
    database.transaction(async (client) => {
      // Inserts the row before locking it. If two callers create the same secret at once, the second waits here and then sees the first
      // one's version.
      await client.query(`insert into ${s}.secret (name, version) values ($1, 0) on conflict (name) do nothing`, [
        name,
      ]);
      const { rows } = await client.query(
        `select id, version, ${s}.next_version(version) as next, tasks, removed_ms from ${s}.secret where name = $1 for update`,
        [name],
      );
      const row = rows[0] as unknown as Present;
      const there = row.version > 0 && row.removed_ms === null;
      const forTasks = tasks === undefined ? (there ? row.tasks : null) : tasks;
      // The number of a removed secret's next version is not reset, so that a version number never has two values.
      const version = row.next;
      const { keyId, wrapped, sealed } = seal(version);
      await client.query(
        `insert into ${s}.secret_version (secret_id, version, key_id, wrapped, sealed, author, reason, changed_ms)
         values ($1, $2, $3, $4, $5, $6, $7, $8)`,
        [row.id, version, keyId, wrapped, sealed, change.author, change.reason, Math.round(change.nowMs)],
      );
      await client.query(
        `update ${s}.secret_version set wrapped = null, sealed = null where secret_id = $1 and version < $2 and sealed is not null`,
        [row.id, there ? row.version : version],
      );
      await client.query(`update ${s}.secret set version = $2, tasks = $3, removed_ms = null where id = $1`, [
        row.id,
        version,
        forTasks,
      ]);
      const before = there ? { version: row.version, tasks: row.tasks } : null;
      const after = { version, tasks: forTasks, key: keyId };
      await put(client, s, change, { act: there ? "edit" : "create", named: name, before, after });
      const { author, reason, nowMs } = change;
      return { name, version, tasks: forTasks, keyId, author, reason, changedMs: Math.round(nowMs) };
    }),
  );
}

function list(database: Database, afterName: string, limit: number): Promise<SecretRecord[]> {
  const s = database.schema;
  return database.query<SecretRecord>("secret-list", `${recordSql(s)} and s.name > $1 order by s.name limit $2`, [
    afterName,
    limit,
  ]);
}

async function find(database: Database, name: string): Promise<SecretRecord> {
  const s = database.schema;
  const [row] = await database.query<SecretRecord>("secret-find", `${recordSql(s)} and s.name = $1`, [name]);
  if (!row) throw unknown(name);
  return row;
}

function versions(database: Database, name: string): Promise<SecretVersion[]> {
  const s = database.schema;
  return database.query<SecretVersion>(
    "secret-versions",
    `select v.version, v.key_id as "keyId", v.author, v.reason, v.changed_ms as "changedMs", v.sealed is not null as kept
     from ${s}.secret s join ${s}.secret_version v on v.secret_id = s.id
     where s.name = $1 and s.removed_ms is null order by v.version desc limit 1000`,
    [name],
  );
}

function remove(database: Database, name: string, change: Change): Promise<void> {
  const s = database.schema;
  return database.transaction(async (client) => {
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
    const before = { version: row.version, tasks: row.tasks };
    await put(client, s, change, { act: "remove", named: name, before, after: null });
  });
}

function rewrap(
  database: Database,
  keyId: string,
  wrap: (old: Omit<Sealed, "sealed">, place: SecretPlace) => Omit<Sealed, "sealed">,
  limit: number,
  change: Change,
): Promise<{ rewrapped: number; left: number }> {
  const s = database.schema;
  return database.persist(() =>
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
        const [before, after] = [
          { version, key: key_id },
          { version, key: fresh.keyId },
        ];
        await put(client, s, change, { act: "rewrap", named: name, before, after });
      }
      const { rows: factors } = await client.query(
        `select user_id, key_id, wrapped from ${s}.second_factor where key_id <> $1 order by user_id limit $2 for update`,
        [keyId, limit],
      );
      for (const { user_id, key_id, wrapped } of factors as unknown as WrappedFactor[]) {
        const fresh = wrap({ keyId: key_id, wrapped }, factorPlace(user_id));
        await client.query(`update ${s}.second_factor set key_id = $2, wrapped = $3 where user_id = $1`, [
          user_id,
          fresh.keyId,
          fresh.wrapped,
        ]);
      }
      const { rows: rest } = await client.query(
        `select (select count(*) from ${s}.secret_version where sealed is not null and key_id <> $1)
              + (select count(*) from ${s}.second_factor where key_id <> $1) as left`,
        [keyId],
      );
      return { rewrapped: rows.length + factors.length, left: Number(rest[0]?.left) };
    }),
  );
}

async function sealedFor(
  database: Database,
  { runId, fence }: AskingRun,
  name: string,
  version: number | null,
): Promise<Sealed & SecretPlace> {
  const s = database.schema;
  const [row] = await database.query<Found>(
    "secret-for",
    `select coalesce(t.of_name, t.name) as task, s.version as present, s.tasks, v.version, v.key_id as "keyId", v.wrapped, v.sealed
     from ${s}.run r join ${s}.task t on t.id = r.task_id
     left join ${s}.secret s on s.name = $3 and s.removed_ms is null
     left join ${s}.secret_version v on v.secret_id = s.id and v.version = coalesce($4, s.version) and v.sealed is not null
     where r.id = $1 and r.fence = $2 and r.state = ${runState.claimed}`,
    [runId, fence, name, version],
  );
  if (!row) throw new CarillonError("FENCE_STALE", `run ${runId} is no longer this worker's, so it is given no secret`);
  // A run in a namespace other than `default` gets a secret only if the secret lists its task. Otherwise, a user who may define tasks in
  // one namespace could read every secret. Such a run gets the same error if the secret does not exist, so that it cannot find out which
  // secrets exist. A run in the namespace `default` cannot find out which secrets are only for tasks in other namespaces: for these, it
  // gets the error for an unknown secret.
  const isOfDefault = namespaceOf(row.task) === defaultNamespace;
  const isMeant = row.tasks?.includes(row.task) ?? isOfDefault;
  const isElsewhere = isOfDefault && row.tasks?.every((task) => namespaceOf(task) !== defaultNamespace) === true;
  if (!isMeant && !isElsewhere) throw forbidden(name, row.task);
  if (row.present === null || isElsewhere) throw unknown(name);
  if (row.sealed === null) throw unknown(name, version);
  return { name, version: row.version, keyId: row.keyId, wrapped: row.wrapped, sealed: row.sealed };
}

interface Wrapped {
  name: string;
  secret_id: number;
  version: number;
  key_id: string;
  wrapped: Buffer;
}

interface WrappedFactor {
  user_id: number;
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
