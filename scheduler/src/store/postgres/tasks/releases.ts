import type { SqlClient } from "../../../base/change.ts";
import { codeOf, codeOfText, type Release, type Standing } from "../../../task/release.ts";
import { definitionText, type TaskDefinition } from "../../../task/task.ts";
import type { ReleaseOfTask } from "../../../task/task-record.ts";
import type { Database } from "../database.ts";

/** SQL: the names of the releases of living processes. */
const liveSql = (s: string) =>
  `select settings ->> 'release' from ${s}.session where ended_ms is null and settings ? 'release'`;

/** SQL condition: the release has no living process, and its tasks may have to be adopted. */
export const goneSql = (s: string): string => `not settled and name not in (${liveSql(s)})`;

const newest = "number desc nulls last, first_ms desc, id desc";
/** The most settled releases that are stored. A release is settled when it has no living process and its tasks have been adopted. */
const keptReleases = 50;

/** SQL: the digest of the task's present definition; null if a version of Carillon stored it that does not record releases. */
const codeSql = "case when t.code_version = t.version then t.code end";

/** Inserts the release if it is new, and updates the time at which it was last seen. @returns its number in the store */
export async function enterRelease(database: Database, release: Release, nowMs: number): Promise<number> {
  const [row] = await database.query<{ id: number }>(
    "release-enter",
    `insert into ${database.schema}.release as r (name, label, number, first_ms, seen_ms) values ($1, $2, $3, $4, $4)
     on conflict (name) do update set seen_ms = greatest(r.seen_ms, excluded.seen_ms), settled = false returning id`,
    [release.name, release.label, release.number, Math.round(nowMs)],
  );
  return (row as { id: number }).id;
}

/**
 * Returns, by task name, what decides whether the release may replace the task's present definition.
 * @param definitions the release's definitions that differ from the present ones
 * @param client reads in this transaction
 */
export async function standings(
  database: Database,
  { release, definitions, sinceMs }: { release: Release; definitions: readonly TaskDefinition[]; sinceMs: number },
  client?: SqlClient,
): Promise<Map<string, Standing>> {
  const s = database.schema;
  const text = `
    select g.name, ${codeSql} as code,
           exists (select from ${s}.task_code c join ${s}.release r on r.id = c.release_id
                   where c.task_id = t.id and c.code = g.code and r.label = $3) as "isKnown",
           (select coalesce(json_agg(json_build_object('code', c.code, 'number', r.number)), '[]')
            from ${s}.task_code c join ${s}.release r on r.id = c.release_id
            where c.task_id = t.id and r.name <> $5 and (r.seen_ms >= $4 or r.name in (${liveSql(s)}))) as backers
    from unnest($1::text[], $2::text[]) as g (name, code) join ${s}.task t on t.name = g.name`;
  const values = [
    definitions.map(({ name }) => name),
    definitions.map(codeOf),
    release.label,
    Math.round(sinceMs),
    release.name,
  ];
  const rows = client ? (await client.query(text, values)).rows : await database.query("", text, values);
  return new Map((rows as unknown as (Standing & { name: string })[]).map(({ name, ...known }) => [name, known]));
}

export interface Brought {
  taskId: number;
  definition: TaskDefinition;
}

/** Records that the release contains these definitions. */
export async function bring(
  database: Database,
  releaseId: number,
  brought: readonly Brought[],
  client?: SqlClient,
): Promise<void> {
  if (brought.length === 0) return;
  const text = `
    insert into ${database.schema}.task_code as c (task_id, release_id, code, definition_text)
    select task_id, $4, code, text from unnest($1::int[], $2::text[], $3::text[]) as g (task_id, code, text) order by task_id
    on conflict (task_id, release_id) do update set code = excluded.code, definition_text = excluded.definition_text
    where c.code <> excluded.code`;
  const texts = brought.map(({ definition }) => definitionText(definition));
  const values = [brought.map(({ taskId }) => taskId), texts.map(codeOfText), texts, releaseId];
  if (client) await client.query(text, values);
  else await database.query("", text, values);
}

/** Returns the releases that contain a definition of the task, the newest first. */
export function releasesOf(database: Database, taskName: string): Promise<ReleaseOfTask[]> {
  const s = database.schema;
  return database.query<ReleaseOfTask>(
    "",
    `select r.name, r.number::float8 as number, coalesce(c.code = ${codeSql}, false) as "isInForce", r.first_ms::float8 as "firstMs", r.seen_ms::float8 as "seenMs",
            array(select node from ${s}.session where ended_ms is null and settings ->> 'release' = r.name order by node) as nodes
     from ${s}.task t join ${s}.task_code c on c.task_id = t.id join ${s}.release r on r.id = c.release_id
     where t.name = $1 order by ${newest.replaceAll(/(number|first_ms|id)/g, "r.$1")}`,
    [taskName],
  );
}

/** A task whose present definition is in no release with a living process, and the definition that it should get. */
export interface LeftTask {
  name: string;
  /** The digest of the task's present definition. */
  code: string;
  definition: TaskDefinition;
  /** `from`: the release that contained the present definition. `to`: the release that contains the new one. */
  from: string;
  to: string;
}

const leftAtOnce = 1_000;

/**
 * Finds tasks whose definition is only from releases without a living process that were last seen before `sinceMs`, if a release with a
 * living process has another definition of the task. If there are none, those releases are marked as settled.
 * @returns at most `leftAtOnce` tasks; the caller repeats until there are none
 */
export async function leftTasks(database: Database, sinceMs: number): Promise<LeftTask[]> {
  const s = database.schema;
  const gone = await database.query<{ id: number }>(
    "releases-look",
    `select id from ${s}.release where seen_ms < $1 and ${goneSql(s)}`,
    [Math.round(sinceMs)],
  );
  if (gone.length === 0) return [];
  const ids = gone.map(({ id }) => id);
  const left = await database.query<LeftTask>(
    "releases-left",
    `with live as (select * from ${s}.release where name in (${liveSql(s)}))
     select distinct on (t.name) t.name, t.code, best.definition_text::jsonb as definition, g.name as "from", best.name as "to"
     from ${s}.release g
     join ${s}.task_code c on c.release_id = g.id
     join ${s}.task t on t.id = c.task_id and t.code = c.code and t.code_version = t.version
     cross join lateral (
       select b.definition_text, live.name from ${s}.task_code b join live on live.id = b.release_id
       where b.task_id = t.id order by ${newest} limit 1) best
     where g.id = any($1) and t.deleted_ms is null and t.bundle is null
       and not exists (select from ${s}.task_code o join live on live.id = o.release_id where o.task_id = t.id and o.code = t.code)
     order by t.name, g.seen_ms desc limit ${leftAtOnce}`,
    [ids],
  );
  if (left.length === 0)
    await database.query("", `update ${s}.release set settled = true where id = any($1) and seen_ms < $2`, [
      ids,
      Math.round(sinceMs),
    ]);
  return left;
}

/** Deletes settled releases that were last seen before `beforeMs`, and all but the latest `keptReleases` of the settled releases. */
export async function forgetReleases(database: Database, beforeMs: number): Promise<void> {
  const s = database.schema;
  await database.query(
    "",
    `with dead as (
       select id, seen_ms, row_number() over (order by seen_ms desc) as place from ${s}.release where settled),
     forgotten as (
       delete from ${s}.release r using dead d
       where r.id = d.id and r.settled and (d.seen_ms < $1 or d.place > ${keptReleases}) returning r.id)
     delete from ${s}.task_code where release_id in (select id from forgotten)`,
    [Math.round(beforeMs)],
  );
}
