import { messageOf } from "../../../base/errors.ts";
import type { EnqueueWrite } from "../../../run/run-record.ts";
import type { Database } from "../database.ts";

/**
 * Whether the commit of a statement waits for the server's disk: always (`full`), unless all its tasks have `durability: "relaxed"`
 * (`by-task`), or never (`relaxed`).
 */
export type Durability = "full" | "by-task" | "relaxed";

const relaxSql = "set_config('synchronous_commit', 'off', true)";
/** SQL: writes an empty message to the server's log, so that the commit waits until the log up to this place is on disk. */
const markLogSql = "pg_logical_emit_message(true, 'carillon', ''::text)::text";

/**
 * SQL: a further column for the CTE that reads the task `t`, or "". It changes the setting for the statement's transaction only.
 * @param all SQL: true if all tasks of the statement are relaxed
 */
export function durabilityColumn(durability: Durability, all = "t.relaxed"): string {
  if (durability === "full") return "";
  return `, ${durability === "relaxed" ? relaxSql : `case when ${all} then ${relaxSql} end`} as unsynced`;
}

/**
 * SQL: a further column for a statement that may find a run instead of inserting one. The found run may be relaxed and not on disk yet.
 * A statement that writes nothing does not wait for the disk, so this column makes it wait: the caller may have asked for a full
 * enqueue, and even for a relaxed one, the process that remembers the run may crash together with the server.
 * @param isFound SQL: true if a run was found
 */
export const foundColumn = (s: string, durability: Durability, isFound: string): string =>
  `, case when ${isFound} and (select relaxed from ${s}.cluster) then ${
    durability === "full" ? markLogSql : `set_config('synchronous_commit', 'on', true) || ${markLogSql}`
  } end as found`;

/** @param relaxes true if the cluster has relaxed enqueues, so that a task may be relaxed */
export function durabilityOf(writes: readonly EnqueueWrite[], relaxes: boolean): Durability {
  if (writes.every(({ durability }) => durability === "relaxed")) return "relaxed";
  return relaxes && writes.every(({ durability }) => durability !== "full") ? "by-task" : "full";
}

/** Returns true if some of these enqueues are relaxed and are, as far as this process knows, the first of the cluster. */
export const isFirstRelaxed = ({ memory }: Database, writes: readonly EnqueueWrite[]): boolean =>
  !memory.relaxed && writes.some(({ durability }) => durability === "relaxed");

/**
 * Permits relaxed enqueues: from now on the store detects a crash of its server, and this process remembers acknowledged writes.
 * @param signal ends the retries while the store is unavailable
 */
export async function permitRelaxed(database: Database, signal: AbortSignal | undefined): Promise<void> {
  const { memory, schema: s } = database;
  await database.persist(() => database.query("", `select ${s}.use_relaxed()`), signal);
  memory.relaxes(true);
}

/**
 * Waits until the acknowledged enqueues of this process are on disk, because it remembers them only as long as it lives. If the server has
 * crashed since, it may lack them although it writes to its disk, so this process also reports what it remembers.
 */
export async function awaitDisk(database: Database): Promise<void> {
  if (!database.memory.relaxed) return;
  try {
    await database.persist(() => database.query("", `select ${markLogSql}`));
    await database.recovery?.told();
  } catch (error) {
    database.log.warn(
      { error: messageOf(error) },
      "this process stops without an answer of the store: relaxed enqueues of the last moments may not be on its disk",
    );
  }
}
