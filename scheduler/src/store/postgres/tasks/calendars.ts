import type { Change, SqlClient } from "../../../base/change.ts";
import { CarillonError, within } from "../../../base/errors.ts";
import { type Json, sortedJson } from "../../../base/json.ts";
import { type Calendar, type CalendarContent, calendarContent } from "../../../schedule/calendar.ts";
import { checkNotShrunk } from "../../../schedule/calendar-days.ts";
import { checkCalendarName } from "../../../schedule/slot-rules.ts";
import type { CalendarRecord, CalendarStore, DayNames } from "../../../task/calendar-store.ts";
import type { TaskDefinition } from "../../../task/task.ts";
import { audited } from "../access/audit.ts";
import type { Database } from "../database.ts";

/** What a change of a calendar does to tasks. */
export interface CalendarUsers {
  /** Plans a task again in the caller's transaction, like an edit. */
  replan(client: SqlClient, what: { name: string; former: Calendar | undefined; change: Change }): Promise<void>;
  /** Stores the rules of a zone if the store has none. */
  enterZone(zone: string, nowMs: number): Promise<void>;
}

/**
 * Caches the calendar versions that were read. A version never changes, so it is read once, and all tasks that use the calendar share the
 * compiled version.
 */
export class KnownCalendars {
  readonly #database: Database;
  readonly #known = new Map<string, Calendar>();

  constructor(database: Database) {
    this.#database = database;
  }

  /** Empties the cache, because the store went back to an earlier state and may have lost cached versions. */
  forget(): void {
    this.#known.clear();
  }

  /** Returns the present versions of the calendars that these definitions use, by name. Calendars that do not exist are left out. */
  async of(definitions: TaskDefinition[]): Promise<Map<string, Calendar>> {
    const names = [...new Set(definitions.flatMap(({ calendar }) => (calendar ? [calendar.name] : [])))];
    if (names.length === 0) return new Map();
    const query = (text: string, values: unknown[]) => this.#database.query<CalendarRow>("", text, values);
    return this.#read(query, names, "");
  }

  /**
   * Returns the present version of the definition's calendar, read in a transaction; undefined if it has no calendar.
   * @param lock true to prevent the removal of the calendar until the transaction ends
   * @throws CALENDAR_UNKNOWN
   */
  async in(client: SqlClient, definition: TaskDefinition, lock: boolean): Promise<Calendar | undefined> {
    const name = definition.calendar?.name;
    if (name === undefined) return undefined;
    const query = async (text: string, values: unknown[]) =>
      (await client.query(text, values)).rows as unknown as CalendarRow[];
    const found = (await this.#read(query, [name], lock ? "for share" : "")).get(name);
    return found ?? within("calendar.name", () => missing(name));
  }

  async #read(query: (text: string, values: unknown[]) => Promise<CalendarRow[]>, names: string[], lock: string) {
    const s = this.#database.schema;
    const rows = await query(
      `select id, name, version from ${s}.calendar where name = any($1) and removed_ms is null ${lock}`,
      [names],
    );
    const found = new Map<string, Calendar>();
    for (const { id, name, version } of rows) {
      const key = `${id} ${version}`;
      let calendar = this.#known.get(key);
      if (!calendar) {
        const [row] = await query(`select content from ${s}.calendar_version where calendar_id = $1 and version = $2`, [
          id,
          version,
        ]);
        if (!row) throw new Error(`calendar ${name} lacks its version ${version}`);
        calendar = { name, version, ...(row.content as CalendarContent) };
        this.#known.set(key, calendar);
        // The previous version is removed from the cache, because no task requests it again.
        this.#known.delete(`${id} ${version - 1}`);
      }
      found.set(name, calendar);
    }
    return found;
  }
}

interface CalendarRow {
  id: number;
  name: string;
  version: number;
  content?: CalendarContent;
}

/** Names the first tasks that use a calendar and that the caller may see, and counts the others. */
function shownUsers(tasks: string[], sees: (task: string) => boolean): string {
  const few = tasks.filter(sees).slice(0, 5);
  const more = tasks.length - few.length;
  if (few.length === 0) return `tasks of other namespaces (${more})`;
  return `${few.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

export function calendarStore(database: Database, { replan, enterZone }: CalendarUsers): CalendarStore {
  const s = database.schema;
  const usersSql = `select name from ${s}.task where deleted_ms is null and version > 0
    and definition->'calendar'->>'name' = $1 order by name`;
  const users = async (client: SqlClient, name: string) =>
    (await client.query(usersSql, [name])).rows.map((row) => String(row.name));
  const recordSql = `select c.name, c.names, v.version, v.content, v.author, v.reason, v.changed_ms as "changedMs",
      array(select t.name from ${s}.task t where t.deleted_ms is null and t.definition->'calendar'->>'name' = c.name order by 1) as tasks
    from ${s}.calendar c join ${s}.calendar_version v on v.calendar_id = c.id`;
  type Row = Omit<CalendarRecord, keyof CalendarContent> & { content: CalendarContent };
  const asRecord = ({ content, ...row }: Row): CalendarRecord => ({ ...row, ...content });

  return {
    async set(name, given, change, expectedVersion = null, mayShrink = true) {
      checkCalendarName(name);
      const content = calendarContent(given);
      const now = Math.round(change.nowMs);
      await enterZone(content.zone, now);
      return database.persist(() =>
        database.transaction(async (client) => {
          // The row is inserted first and locked afterwards: if two callers create the calendar at the same time, the second waits and then
          // reads the version of the first.
          await client.query(`insert into ${s}.calendar (name, version) values ($1, 0) on conflict (name) do nothing`, [
            name,
          ]);
          const { rows } = await client.query(
            `select id, version, ${s}.next_version(version) as next, removed_ms, names from ${s}.calendar where name = $1 for update`,
            [name],
          );
          const row = rows[0] as unknown as StoredCalendar;
          // This must be a separate statement, because the snapshot of the statement that waited for the lock is from before the wait.
          const { rows: present } = await client.query(
            `select content from ${s}.calendar_version where calendar_id = $1 and version = $2`,
            [row.id, row.version],
          );
          const there = row.removed_ms === null && row.version > 0;
          const was = present[0]?.content as CalendarContent | undefined;
          if (expectedVersion !== null && expectedVersion !== (there ? row.version : 0))
            throw stale(name, expectedVersion, there ? row.version : 0);
          const isSame =
            row.removed_ms === null && was !== undefined && sortedJson(was as never) === sortedJson(content as never);
          if (there && !isSame && !mayShrink) checkNotShrunk(name, was as CalendarContent, content, now);
          const names = keptNames({ ...row.names, ...given.names }, [...content.holidays, ...(was?.holidays ?? [])]);
          await client.query(`update ${s}.calendar set names = $2 where id = $1 and names <> $2`, [row.id, names]);
          if (isSame) return { calendar: { name, version: row.version, ...content }, changed: false, tasks: [] };
          const version = row.next;
          await client.query(`update ${s}.calendar set version = $2, removed_ms = null where id = $1`, [
            row.id,
            version,
          ]);
          await client.query(
            `insert into ${s}.calendar_version (calendar_id, version, content, author, reason, changed_ms)
             values ($1, $2, $3, $4, $5, $6)`,
            [row.id, version, JSON.stringify(content), change.author, change.reason, now],
          );
          const tasks = await users(client, name);
          const reason = `calendar ${name} is at version ${version}`;
          const former = there ? { name, version: row.version, ...(was as CalendarContent) } : undefined;
          for (const task of tasks) await replan(client, { name: task, former, change: { ...change, reason } });
          const before = there ? (was as unknown as Json) : null;
          const entry = {
            atMs: now,
            who: change.author,
            act: there ? "edit" : "create",
            about: "calendar" as const,
            named: name,
          };
          await audited(client, s, { ...entry, before, after: content as unknown as Json, why: change.reason });
          return { calendar: { name, version, ...content }, changed: true, tasks };
        }),
      );
    },

    async find(name, version) {
      const [row] = await database.query<Row>(
        "calendar-find",
        `${recordSql} where c.name = $1 and c.removed_ms is null and v.version = coalesce($2, c.version)`,
        [name, version ?? null],
      );
      if (!row) throw unknown(name, version);
      return asRecord(row);
    },

    async list() {
      const rows = await database.query<Row>(
        "calendar-list",
        `${recordSql} where c.removed_ms is null and v.version = c.version order by c.name`,
      );
      return rows.map(asRecord);
    },

    async remove(name, { author, reason, nowMs }, sees = () => true) {
      await database.transaction(async (client) => {
        const { rows } = await client.query(
          `select id, version from ${s}.calendar where name = $1 and removed_ms is null for update`,
          [name],
        );
        const [row] = rows;
        if (!row) throw unknown(name);
        const tasks = await users(client, name);
        if (tasks.length > 0) {
          throw new CarillonError("CALENDAR_USED", `calendar ${name} is used by ${shownUsers(tasks, sees)}`, {
            hint: "Give them another calendar, or none, first.",
          });
        }
        await client.query(`update ${s}.calendar set removed_ms = $2 where name = $1`, [name, Math.round(nowMs)]);
        const { rows: present } = await client.query(
          `select content from ${s}.calendar_version where calendar_id = $1 and version = $2`,
          [row.id, row.version],
        );
        const entry = { atMs: nowMs, who: author, act: "remove", about: "calendar" as const, named: name };
        await audited(client, s, { ...entry, before: present[0]?.content as Json, after: null, why: reason });
      });
    },
  };
}

interface StoredCalendar {
  id: number;
  version: number;
  next: number;
  removed_ms: number | null;
  names: DayNames;
}

const longestName = 200;

function keptNames(names: DayNames, days: readonly string[]): DayNames {
  const kept = [...new Set(days)].sort().filter((day) => Object.hasOwn(names, day));
  return Object.fromEntries(kept.map((day) => [day, (names[day] as string).slice(0, longestName)]));
}

function stale(name: string, expected: number, version: number): CarillonError {
  const now = version === 0 ? "is not there" : `is at version ${version}`;
  return new CarillonError("CALENDAR_STALE", `calendar ${name} ${now}; this change was made from version ${expected}`, {
    hint: "Read it again, look at what changed, and repeat the change.",
  });
}

function missing(name: string): never {
  throw unknown(name);
}

function unknown(name: string, version?: number): CarillonError {
  const which = version === undefined ? "" : ` in version ${version}`;
  return new CarillonError("CALENDAR_UNKNOWN", `there is no calendar ${JSON.stringify(name)}${which}`, {
    hint: "See `carillon calendars list`; store it with `carillon calendars set`.",
  });
}
