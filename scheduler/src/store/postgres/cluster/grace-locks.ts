import type { GraceLockRecordRow, GraceLockStore } from "../../../cluster/grace-lock-store.ts";
import type { Database } from "../database.ts";

export function graceLockStore(database: Database): GraceLockStore {
  const s = database.schema;
  const some = async (name: string, text: string, values: unknown[]) =>
    (await database.ask(name, text, values)).length > 0;
  return {
    async read(name) {
      const [row] = await database.ask<GraceLockRecordRow>(
        "grace-lock-read",
        `select version, fence, holder, beat, timeout_ms as "timeoutMs", record from ${s}.grace_lock where name = $1`,
        [name],
      );
      return row ?? null;
    },

    async take(name, version, { holder, replaced }, timeoutMs, record) {
      const values = [name, holder, timeoutMs, JSON.stringify(record)];
      const [taken] =
        version === null
          ? await database.ask<{ fence: number }>(
              "grace-lock-first-take",
              `insert into ${s}.grace_lock (name, holder, timeout_ms, record, fence)
               values ($1, $2, $3, $4, ${s}.next_grace_fence(0))
               on conflict (name) do nothing returning fence`,
              values,
            )
          : await database.ask<{ fence: number }>(
              "grace-lock-take",
              `update ${s}.grace_lock
               set holder = $2, timeout_ms = $3, record = $4, beat = beat + 1, version = version + 1,
                   fence = ${s}.next_grace_fence(fence)
               where name = $1 and version = $5 and holder is not distinct from $6 returning fence`,
              [...values, version, replaced],
            );
      return taken ?? null;
    },

    beat: (name, holder) =>
      some(
        "grace-lock-beat",
        `update ${s}.grace_lock set beat = beat + 1 where name = $1 and holder = $2 returning beat`,
        [name, holder],
      ),

    write: (name, holder, record, release) =>
      some(
        "grace-lock-write",
        `update ${s}.grace_lock
         set record = $3, version = version + 1, beat = beat + 1, holder = case when $4 then null else holder end
         where name = $1 and holder = $2 returning version`,
        [name, holder, JSON.stringify(record), release],
      ),

    vacate: (name, holder, beat) =>
      some(
        "grace-lock-vacate",
        `update ${s}.grace_lock set holder = null, version = version + 1
         where name = $1 and holder = $2 and ($3::bigint is null or beat = $3) returning version`,
        [name, holder, beat],
      ),
  };
}
