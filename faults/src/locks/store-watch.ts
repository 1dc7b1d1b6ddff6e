import type pg from "pg";
import type { Grant } from "../../../simulation/src/lock-history.ts";

/** A grant of a lock as the coordination service shows it, without the data that only the processes know. */
export type Node = Pick<Grant, "lock" | "fence" | "session" | "givenMs"> & {
  owner: string | null;
  /** True if `fence` contains only the lower half of the fence. */
  half?: boolean;
  endedMs: number | null;
  /** For a grant that has ended: whether the service shows that it was released; undefined if unknown. */
  released?: boolean;
};

interface Change {
  readonly at_ms: number;
  readonly what: "lock" | "lock_session" | "grace_lock";
  readonly was: Row | null;
  readonly now: Row | null;
}
interface Row {
  id: number;
  name: string;
  line: string[];
  fences: number[];
  holder: string | null;
  fence: number;
  record: { owner: string; released: boolean };
}

/**
 * Installs triggers that record the changes of the lock tables, except heartbeats, in the transactions that make them.
 * @param schema quoted
 */
export async function watchStoreLocks(sql: pg.Pool, schema: string): Promise<void> {
  const tables = ["lock", "lock_session", "grace_lock"];
  await sql.query(`
    create table ${schema}.lock_seen (
      seq bigint generated always as identity primary key, at_ms float8 not null, what text not null, was jsonb, now jsonb
    );
    create function ${schema}.see_lock() returns trigger language plpgsql as $see$
    declare
      was jsonb := case when tg_op <> 'INSERT' then to_jsonb(old) end;
      now jsonb := case when tg_op <> 'DELETE' then to_jsonb(new) end;
    begin
      if tg_op <> 'UPDATE' or was - '{beat,seen_ms}'::text[] <> now - '{beat,seen_ms}'::text[] then
        insert into ${schema}.lock_seen (at_ms, what, was, now)
          values (extract(epoch from clock_timestamp()) * 1000, tg_table_name, was, now);
      end if;
      return null;
    end $see$;
    ${tables.map((table) => `create trigger see after insert or update or delete on ${schema}.${table} for each row execute function ${schema}.see_lock();`).join("\n")}`);
}

/** Returns the recorded grants in the order in which the store made them. */
export async function readStoreLocks(sql: pg.Pool, schema: string): Promise<Node[]> {
  const { rows } = await sql.query<Change>(`select at_ms, what, was, now from ${schema}.lock_seen order by seq`);
  return nodesOf(rows);
}

export function nodesOf(changes: readonly Change[]): Node[] {
  const nodes: Node[] = [];
  const present = new Map<string, Node>();
  const end = (key: string, atMs: number, released?: boolean) => {
    const node = present.get(key);
    if (node?.endedMs === null) Object.assign(node, { endedMs: atMs, ...(released !== undefined && { released }) });
    present.delete(key);
  };
  for (const { at_ms: atMs, what, was, now } of changes) {
    const begin = (key: string, node: Omit<Node, "givenMs" | "endedMs">) => {
      const one = { ...node, givenMs: atMs, endedMs: null };
      present.set(key, one);
      nodes.push(one);
    };
    if (what === "lock_session" && !now && was)
      for (const [key, { session }] of present) if (session === String(was.id)) end(key, atMs);
    if (what === "grace_lock" && (was?.holder ?? null) !== (now?.holder ?? null)) {
      if (was?.holder) end(was.holder, atMs, now?.holder === null && now.record.released);
      if (now?.holder)
        begin(now.holder, { lock: now.name, fence: now.fence, session: now.holder, owner: now.record.owner });
    }
    if (what !== "lock") continue;
    const { name, line = [], fences = [] } = now ?? {};
    for (const token of was?.line ?? []) if (!line.includes(token)) end(token, atMs);
    for (const [i, token] of line.entries())
      if (!was?.line.includes(token))
        begin(token, {
          lock: String(name).replace(/^\w+:/, ""),
          fence: fences[i] as number,
          session: token.slice(0, token.indexOf(".")),
          owner: null,
        });
  }
  return nodes;
}
