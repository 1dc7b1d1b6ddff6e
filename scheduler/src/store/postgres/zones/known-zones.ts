/** The rules of time zones by which tasks are planned: see docs/tasks/time-zones.md and migration 61. */
import type { Change } from "../../../base/change.ts";
import { isCarillonError } from "../../../base/errors.ts";
import type { Calendar } from "../../../schedule/calendar.ts";
import { ruledZone, type ZoneRules, zoneOf } from "../../../schedule/zone.ts";
import { ownRules, ownZones, sameRules, type ZonesInForce, zonesUsed } from "../../../schedule/zone-rules.ts";
import type { TaskDefinition } from "../../../task/task.ts";
import type { ChangedZone } from "../../../task/task-record.ts";
import { audited } from "../access/audit.ts";
import type { Database } from "../database.ts";
import { type Query, queryOf } from "../query.ts";

/** The version of this process's time zone database, such as "2026a"; "" if it is unknown, which counts as older than any other. */
const ownData: string = process.versions.tz ?? "";

interface RulesRow {
  name: string;
  version: number;
  data: string;
  starts: number[];
  offsets: number[];
  to: number;
}

const rowFields = `name, version, data, starts_ms::float8[] as starts, offsets_ms::float8[] as offsets, to_ms::float8 as "to"`;

/** One version of a zone's rules. */
interface StoredRules {
  version: number;
  data: string;
  rules: ZoneRules;
}

interface ZoneChange {
  name: string;
  version: number;
}

/**
 * Caches the store's zone rules. Each row is read once, because its rules never change; only the name of the time zone database can, and
 * how far the rules reach.
 */
export class KnownZones {
  readonly #database: Database;
  #version = 0;
  #hasRead = false;
  readonly #changes = new Map<string, StoredRules[]>();
  readonly #inForce = new Map<number, ZonesInForce>();
  /** The names under which zones are compiled, keyed by the zone's name and the version of its rules. */
  readonly #names = new Map<string, string>();

  constructor(database: Database) {
    this.#database = database;
  }

  /** Empties the cache, because the store went back to an earlier state and may have lost cached rules. */
  forget(): void {
    this.#version = 0;
    this.#hasRead = false;
    this.#changes.clear();
    this.#inForce.clear();
    this.#names.clear();
  }

  /** The newest version of the rules that this process has read. */
  get version(): number {
    return this.#version;
  }

  /** Returns the rules that are in force at a version. `refresh` must have read this version before. */
  at(version: number): ZonesInForce {
    if (this.#changes.size === 0) return ownZones;
    const upTo = Math.min(version, this.#version);
    let known = this.#inForce.get(upTo);
    if (known === undefined) {
      known = { named: (zone) => this.#named(zone, upTo) };
      this.#inForce.set(upTo, known);
    }
    return known;
  }

  /** Returns the rules if this definition or its calendar uses a zone whose rules differ from this process's own; otherwise {}. */
  of(definition: TaskDefinition, calendar: Calendar | undefined, version: number): { zones?: ZonesInForce } {
    const zones = this.at(version);
    return zonesUsed(definition, calendar).some((zone) => zones.named(zone) !== zone) ? { zones } : {};
  }

  /**
   * Returns the name under which the zone is compiled by the rules in force at this version. These are the newest rules of the zone
   * up to that version; if there are none, the zone's first rules.
   */
  #named(zone: string, version: number): string {
    const changes = this.#changes.get(zone);
    const change = changes?.findLast((one) => one.version <= version) ?? changes?.[0];
    if (change === undefined || change.data === ownData) return zone;
    const key = `${zone} ${change.version}`;
    let name = this.#names.get(key);
    if (name === undefined) {
      const { rules } = change;
      const own = readable(() => zoneOf(zone).rules(rules.startsMs[0] as number, rules.toMs));
      // If this process's database lacks the zone, the compilation of the zone throws an error later.
      name = own === null || sameRules(own, rules) ? zone : ruledZone(zone, rules);
      this.#names.set(key, name);
    }
    return name;
  }

  /**
   * Reads the rules that are newer than the cached ones.
   * @returns the newest version. A planner must store this number and not `version`, because the cache may grow in the meantime
   */
  async refresh(query: Query = queryOf(this.#database)): Promise<number> {
    const s = this.#database.schema;
    const rows = await query<RulesRow & { newest: number }>(
      "zone-rules",
      `select c.zones_version as newest, z.* from ${s}.cluster c
       left join (select ${rowFields} from ${s}.zone_rules) z on z.version > $1 order by z.version`,
      [this.#version],
    );
    for (const row of rows) {
      if (row.name === null) continue;
      const changes = this.#changes.get(row.name) ?? [];
      if (changes.some(({ version }) => version === row.version)) continue;
      this.#changes.set(row.name, [...changes, stored(row)]);
    }
    this.#hasRead = true;
    this.#version = Math.max(this.#version, rows[0]?.newest ?? 0);
    return this.#version;
  }

  /** Reads the rules that these tasks need, unless they are cached. */
  async readFor(rows: readonly { definition: TaskDefinition; zones_version: number }[], query?: Query): Promise<void> {
    const isNewer = rows.some((row) => row.zones_version > this.#version);
    const useZones = ({ definition }: { definition: TaskDefinition }) =>
      definition.calendar !== undefined || zonesUsed(definition, undefined).length > 0;
    if (isNewer || (!this.#hasRead && rows.some(useZones))) await this.refresh(query);
  }

  /**
   * Stores the rules of zones for which the store has none, from this process's own database. It must be called before tasks that use the
   * zones are stored, and can be repeated.
   */
  async enter(definitions: readonly TaskDefinition[], others: readonly string[], nowMs: number): Promise<void> {
    const names = new Set([...definitions.flatMap((definition) => zonesUsed(definition, undefined)), ...others]);
    names.delete("UTC");
    if (names.size === 0) return;
    await this.refresh();
    const wanted = [...names].filter((name) => !this.#changes.has(name));
    if (wanted.length > 0) await this.#write(wanted, nowMs, "missing");
  }

  /** Stores the rules of zones that tasks and calendars used before rules were stored. This happens once per store. */
  async enterUsed(nowMs: number): Promise<void> {
    await this.refresh();
    if (this.#version > 0) return;
    const s = this.#database.schema;
    const rows = await this.#database.query<{ zone: string | null }>(
      "zone-rules-used",
      `select t.definition->'schedule'->>'zone' as zone from ${s}.task t where t.definition->'schedule' ? 'zone'
       union select b->>'zone' from ${s}.task t, jsonb_array_elements(t.definition->'blackout') b where b ? 'zone'
       union select v.content->>'zone' from ${s}.calendar_version v`,
    );
    const names = rows.flatMap(({ zone }) => (zone === null || zone === "UTC" ? [] : [zone]));
    if (names.length > 0) await this.#write(names, nowMs, "missing");
    await this.#database.query(
      "zone-rules-begun",
      `update ${s}.cluster set zones_version = 1 where zones_version = 0`,
      [],
    );
    await this.refresh();
  }

  /** If this process's time zone database is newer, stores its rules for the zones whose rules differ. @returns the changed zones */
  async bring(change: Change): Promise<ChangedZone[]> {
    await this.refresh();
    const older: string[] = [];
    for (const [name, changes] of this.#changes)
      if ((changes.at(-1) as StoredRules).data < ownData && readable(() => ownRules(name, change.nowMs)) !== null)
        older.push(name);
    return older.length === 0 ? [] : this.#write(older, change.nowMs, "older", change.author);
  }

  /** Writes rules under a lock on the cluster's row, so that processes decide one after the other, each by the present rows. */
  async #write(
    names: readonly string[],
    nowMs: number,
    which: "missing" | "older",
    who?: string,
  ): Promise<ChangedZone[]> {
    const s = this.#database.schema;
    const { told: changed, present } = await this.#database.persist(() =>
      this.#database.transaction(async (client) => {
        await client.query(`select 1 from ${s}.cluster for update`);
        const { rows } = await client.query(
          `select distinct on (name) ${rowFields} from ${s}.zone_rules where name = any($1) order by name, version desc`,
          [names],
        );
        const present = new Map((rows as unknown as RulesRow[]).map((row) => [row.name, stored(row)]));
        const told: ChangedZone[] = [];
        for (const name of names) {
          const there = present.get(name);
          if (which === "missing" ? there !== undefined : there === undefined || there.data >= ownData) continue;
          const rules = readable(() => ownRules(name, nowMs));
          if (rules === null) continue;
          const values = [name, ownData, rules.startsMs, rules.offsetsMs, rules.toMs];
          if (there && sameRules(there.rules, rules)) {
            // A newer database with the same rules is not a change, so the row is only updated.
            await client.query(
              `update ${s}.zone_rules set data = $2, starts_ms = $3, offsets_ms = $4, to_ms = $5 where name = $1 and version = $6`,
              [...values, there.version],
            );
            present.set(name, { version: there.version, data: ownData, rules });
            continue;
          }
          await client.query(
            `with next as (update ${s}.cluster set zones_version = zones_version + 1 returning zones_version)
             insert into ${s}.zone_rules (name, version, data, starts_ms, offsets_ms, to_ms)
             select $1, zones_version, $2, $3, $4, $5 from next`,
            values,
          );
          if (there === undefined) continue;
          told.push({ zone: name, from: there.data, to: ownData });
          await audited(client, s, {
            atMs: Math.round(nowMs),
            who: who as string,
            act: "edit",
            about: "cluster",
            named: name,
            before: { zoneData: there.data },
            after: { zoneData: ownData },
            why: "a newer time zone database has other rules",
          });
        }
        return { told, present };
      }),
    );
    for (const [name, rules] of present) this.#replace(name, rules);
    await this.refresh();
    return changed;
  }

  /**
   * Caches the row of a version that is cached already, because this process or another one with a newer database and equal rules has
   * updated it: `refresh` reads only newer versions.
   */
  #replace(name: string, rules: StoredRules): void {
    const changes = this.#changes.get(name)?.map((one) => (one.version === rules.version ? rules : one));
    if (changes) this.#changes.set(name, changes);
  }

  /** Selects tasks planned by rules older than the newest rules of a zone that they use, ordered by number, starting after `afterId`. */
  plannedBefore(
    query: Query,
    changed: readonly ZoneChange[],
    afterId: number,
    most: number,
  ): Promise<{ id: number; name: string }[]> {
    return query("zone-rules-behind", plannedBeforeSql(this.#database.schema), [
      changed.map(({ name }) => name),
      changed.map(({ version }) => version),
      afterId,
      most,
    ]);
  }

  /** Returns the zones whose rules have changed since they were first stored, with the version of the newest change. */
  changedZones(): ZoneChange[] {
    const changed = [...this.#changes].filter(([, changes]) => changes.length > 1);
    return changed.map(([name, changes]) => ({ name, version: (changes.at(-1) as StoredRules).version }));
  }
}

const stored = ({ version, data, starts, offsets, to }: RulesRow): StoredRules => ({
  version,
  data,
  rules: { startsMs: starts, offsetsMs: offsets, toMs: to },
});

/** Returns null if this process's database lacks the zone, so that its rules cannot be compared. */
function readable(read: () => ZoneRules): ZoneRules | null {
  try {
    return read();
  } catch (error) {
    if (!isCarillonError(error, "ZONE_UNKNOWN")) throw error;
    return null;
  }
}

const plannedBeforeSql = (s: string) => `
  with changed as (select * from unnest($1::text[], $2::int[]) as c (zone, version))
  select t.id, t.name from ${s}.plan p join ${s}.task t on t.id = p.task_id
  where p.zones_version < (select max(version) from changed) and t.id > $3 and t.deleted_ms is null and t.version > 0
    and exists (
      select from changed c where p.zones_version < c.version and (
        t.definition->'schedule'->>'zone' = c.zone
        or exists (select from jsonb_array_elements(t.definition->'blackout') b where b->>'zone' = c.zone)
        or exists (
          select from ${s}.calendar k join ${s}.calendar_version v on v.calendar_id = k.id and v.version = k.version
          where k.name = t.definition->'calendar'->>'name' and v.content->>'zone' = c.zone)))
  order by t.id limit $4`;
