import type { SqlClient } from "../../../base/change.ts";
import { CarillonError } from "../../../base/errors.ts";
import { type GroupRecord, type GroupStore, waitingMost } from "../../../task/group-store.ts";
import { audited } from "../access/audit.ts";
import { prioritiesSql } from "../claims/ready.ts";
import { notifySql } from "../cluster/signals.ts";
import type { Database } from "../database.ts";
import { runState } from "../states.ts";
import type { Tasks } from "./read.ts";
import { inNamespacesSql } from "./task-filter.ts";

/** After a limit is removed, the most runs for which the time of the removal is recorded. Alarms may treat further runs as late. */
const setReadyMost = 10_000;

interface Row extends Omit<GroupRecord, "changed"> {
  atMs: number | null;
  by: string | null;
  why: string | null;
}

export function groupStore(database: Database): GroupStore {
  const s = database.schema;
  /** @param groups SQL: selects the ids and the names of the groups; $1 is the time in epoch ms */
  const records = async (statement: string, groups: string, values: unknown[]): Promise<GroupRecord[]> => {
    const rows = await database.query<Row>(
      statement,
      `select g.name, l.most as limit, c.changed_ms as "atMs", c.author as by, c.reason as why,
              (select count(*)::int from ${s}.task t where t.group_id = g.id and t.deleted_ms is null) as tasks,
              (select count(*)::int from ${s}.session o
               where o.ended_ms is null and coalesce(o.capacity, 1) > 0 and g.name = any (o.groups)) as workers,
              (select count(*)::int from ${s}.task t join ${s}.run r on r.task_id = t.id and r.state = ${runState.claimed} where t.group_id = g.id) as claimed,
              (select count(*)::int from unnest(${prioritiesSql}) as p (priority) cross join lateral (
                 select 1 from ${s}.run where state = ${runState.ready} and group_id = g.id and priority = p.priority
                 and due_ms <= $1 order by due_ms limit ${waitingMost}) r) as waiting
       from (${groups}) g
         left join ${s}.group_limit l on l.group_id = g.id
         left join lateral (select * from ${s}.group_limit_change where group_id = g.id order by id desc limit 1) c on true
       order by g.name`,
      values,
    );
    return rows.map(({ atMs, by, why, ...row }) => ({
      ...row,
      changed: atMs === null ? null : { atMs, by: by ?? "", why: why ?? "" },
    }));
  };
  return {
    list: (nowMs, { afterName, limit, namespaces }) =>
      records(
        "groups-list",
        `select id, name from ${s}.worker_group where name > $2 and ${inNamespacesSql("name", "$4::text[]")} order by name limit $3`,
        [Math.round(nowMs), afterName, limit, namespaces],
      ),

    async find(nowMs, name) {
      const named = `select id, name from ${s}.worker_group where name = $2`;
      const [found] = await records("groups-find", named, [Math.round(nowMs), name]);
      return found ?? null;
    },

    limit(name, most, change) {
      return database.persist(() =>
        database.transaction(async (client) => {
          const { rows } = await client.query(
            `select g.id, l.most from ${s}.worker_group g left join ${s}.group_limit l on l.group_id = g.id
             where g.name = $1 for no key update of g`,
            [name],
          );
          const [group] = rows;
          if (!group) throw unknown(name);
          // The limit is read under the lock of the group's row, which serialises changes of limits. Claims lock the row of the limit
          // instead.
          if ((group.most ?? null) === most) return { changed: false };
          if (most === null) {
            for (const table of ["group_freed", "group_limit"])
              await client.query(`delete from ${s}.${table} where group_id = $1`, [group.id]);
            // These runs waited for the limit until now, so they count as late only if they still wait for a worker from now on.
            await client.query(
              `update ${s}.run r set ready_ms = $2 from (
                 select id from ${s}.run where state = ${runState.ready} and group_id = $1 and due_ms < $2
                 order by priority desc, due_ms limit ${setReadyMost} for update skip locked) x
               where r.id = x.id and r.state = ${runState.ready}`,
              [group.id, Math.round(change.nowMs)],
            );
          } else
            await client.query(
              // From now on the runs that waited for the old limit count as waiting for a worker.
              `insert into ${s}.group_limit as l (group_id, most) values ($1, $2)
               on conflict (group_id) do update set most = excluded.most, full_ms = case when l.full_ms > 0 then $3::bigint end`,
              [group.id, most, Math.round(change.nowMs)],
            );
          await client.query(
            `insert into ${s}.group_limit_change (group_id, most, author, reason, changed_ms) values ($1, $2, $3, $4, $5)`,
            [group.id, most, change.author, change.reason, Math.round(change.nowMs)],
          );
          await client.query(`select ${notifySql(s, `'ready ${Math.round(change.nowMs)}'`)}`);
          await audited(client, s, {
            atMs: change.nowMs,
            who: change.author,
            act: "limit",
            about: "group",
            named: name,
            why: change.reason,
            before: (group.most as number | null) ?? null,
            after: most,
          });
          return { changed: true };
        }),
      );
    },
  };
}

const groupsSql = (s: string) => `
  with given as (select distinct name from unnest($1::text[]) as name),
  made as (insert into ${s}.worker_group (name) select name from given g
           where not exists (select from ${s}.worker_group w where w.name = g.name) order by name
           on conflict do nothing returning id, name)
  select id, name from made union all select w.id, w.name from ${s}.worker_group w join given using (name)`;

/** Returns the number of the group, which is created if it does not exist. */
export async function groupNumber(tasks: Tasks, name: string): Promise<number> {
  return (await groupNumbers(tasks, [name])).get(name) as number;
}

/**
 * Returns the numbers of many groups, by name. New groups are inserted in the order of their names, so that concurrent nodes
 * cannot deadlock.
 */
export async function groupNumbers(tasks: Tasks, names: readonly string[]): Promise<Map<string, number>> {
  const { database, s, groups } = tasks;
  const unknown = () => [...new Set(names)].filter((name) => !groups.has(name)).sort();
  // The loop reads again: another node may have created a group after the statement's snapshot was taken.
  for (let asked = unknown(); asked.length > 0; asked = unknown()) {
    const rows = await database.query<{ id: number; name: string }>("task-groups", groupsSql(s), [asked]);
    for (const { id, name } of rows) groups.set(name, id);
  }
  return new Map(names.map((name) => [name, groups.get(name) as number]));
}

/**
 * Returns a group's number, as `groupNumber` does, in the caller's transaction; if it is rolled back, a group created in it does
 * not exist either. The statement waits while another transaction creates a group with this name, so it must be executed before
 * tasks are locked.
 */
export async function groupNumberIn({ s, groups }: Tasks, client: SqlClient, name: string): Promise<number> {
  const known = groups.get(name);
  if (known !== undefined) return known;
  for (;;) {
    const { rows } = await client.query(groupsSql(s), [[name]]);
    if (rows[0]) return rows[0].id as number;
  }
}

const unknown = (name: string) =>
  new CarillonError("GROUP_UNKNOWN", `there is no group ${JSON.stringify(name)}`, {
    hint: "A group is there once a task or a worker names it. See `carillon groups list`.",
  });
