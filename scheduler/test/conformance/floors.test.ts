/**
 * Tests that a write that began before the end of a recovery draws its numbers above the recovered ones, so that no version or
 * fence is used twice.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { calendarContent } from "../../src/schedule/calendar.ts";
import { defineTask } from "../../src/task/task.ts";
import { everyPostgres } from "../support/servers.ts";
import { asCode, change, openStage, type Stage, until } from "../support/store-stage.ts";

describe.each(everyPostgres())(
  "writes that overlap a recovery draw numbers above the recovered ones, on $title",
  (server) => {
    let stage: Stage;

    beforeAll(async () => {
      stage = await openStage(server);
      // Triggers fire in the order of their names. The name of this trigger puts it before the trigger that checks for a recovery, so that
      // the statement waits before the check.
      await stage.rows(
        `create function $s.held() returns trigger language plpgsql as
         $f$ begin perform pg_advisory_xact_lock_shared(hashtext('$s')); return null; end $f$`,
      );
      for (const table of ["task", "grace_lock", "calendar", "secret", "user_account"])
        await stage.rows(
          `create trigger a_held before insert or update on $s.${table} for each statement execute function $s.held()`,
        );
    });
    afterAll(() => stage.close());

    /** Starts the write, and carries out a recovery after the write has begun and before the write checks for a recovery. */
    async function beside<T>(write: () => Promise<T>): Promise<T> {
      const holder = await stage.sql.connect();
      try {
        await holder.query("select pg_advisory_lock(hashtext($1))", [stage.schema]);
        const writing = write();
        await until("the write waits", async () => {
          const waiting = await stage.rows(
            "select from pg_locks where locktype = 'advisory' and not granted and objid = (hashtext('$s')::bigint & 4294967295)::oid",
          );
          return waiting.length > 0;
        });
        await stage.rows(
          "update $s.cluster set version_floor = version_floor + 1000, grace_floor = grace_floor + 1000, recovery = recovery + 1",
        );
        await holder.query("select pg_advisory_unlock(hashtext($1))", [stage.schema]);
        return await writing;
      } finally {
        holder.release();
      }
    }
    const floor = async () =>
      (await stage.one<{ floor: number }>("select version_floor as floor from $s.cluster")).floor;

    test("a new task and an edited one", async () => {
      const { tasks } = stage.store;
      await beside(() => tasks.saveAll([defineTask("first", {})], change(stage.nowMs), asCode));
      expect((await tasks.byName("first")).version).toBe((await floor()) + 1);
      expect((await beside(() => stage.task("made"))).version).toBe((await floor()) + 1);
      expect((await beside(() => stage.task("made", { retry: 3 }))).version).toBe((await floor()) + 1);
    });

    test("a new grace lock and one that is taken again", async () => {
      const { graceLocks } = stage.store;
      const holder = { holder: "00000000-0000-4000-8000-000000000001", replaced: null };
      const take = (version: number | null) =>
        beside(() => graceLocks.take("lock", version, holder, 6_000, { state: "held" } as never));
      const first = await take(null);
      expect(first?.fence).toBe((await floor()) + 1);
      await graceLocks.vacate("lock", holder.holder, null);
      const row = await graceLocks.read("lock");
      expect((await take(row?.version ?? 0))?.fence).toBe((await floor()) + 1);
    });

    test("a calendar, a secret and a user", async () => {
      const { calendars, secrets, access } = stage.store;
      const content = calendarContent({ zone: "UTC", weekend: [], holidays: ["2031-01-01"] });
      const { calendar } = await beside(() => calendars.set("days", content, change(stage.nowMs)));
      expect(calendar.version).toBe((await floor()) + 1);
      const sealed = { keyId: "k", wrapped: Buffer.alloc(8), sealed: Buffer.alloc(8) };
      const secret = await beside(() => secrets.set("key", () => sealed, null, change(stage.nowMs)));
      expect(secret.version).toBe((await floor()) + 1);
      const user = { name: "ada", hash: "none", role: "viewer" as const, grants: [] };
      const made = await beside(() => access.createUser(user, change(stage.nowMs)));
      expect(made.version).toBe((await floor()) + 1);
    });

    test("tables with versions or fences are writable only after the store's recovery", async () => {
      await stage.rows("update $s.cluster set recovering_since_ms = 1");
      for (const table of ["task", "grace_lock", "calendar", "secret", "user_account"])
        await expect(stage.rows(`delete from $s.${table} where false`), table).rejects.toMatchObject({ code: "CA001" });
      await stage.rows("update $s.cluster set recovering_since_ms = null");
    });
  },
);
