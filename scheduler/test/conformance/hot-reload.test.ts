/** Tests tasks that are defined again in a running process, as a development server does. */
import { randomBytes } from "node:crypto";
import pg from "pg";
import { afterEach, describe, expect, test } from "vitest";
import { type Carillon, carillon, every, taskType } from "../../src/index.ts";
import { postgres } from "../support/servers.ts";
import { recordingLog, until } from "../support/store-stage.ts";

describe("with hotReload, a task that is defined again", () => {
  const schema = `hot_${randomBytes(4).toString("hex")}`;
  const { url } = postgres();
  let tower: Carillon | undefined;
  afterEach(async () => {
    await tower?.stop();
    const database = new pg.Client({ connectionString: url });
    await database.connect();
    await database.query(`drop schema if exists ${schema} cascade`);
    await database.end();
  });
  const make = () => {
    const { log, lines } = recordingLog();
    tower = carillon({ store: url, schema, handleSignals: false, hotReload: true, log });
    return { tower, lines };
  };

  test("uses the new handler for runs that begin afterwards, and stores its new options", async () => {
    const { tower, lines } = make();
    const release: (() => void)[] = [];
    tower.task("greet", { schedule: every("1h") }, () => new Promise((resolve) => release.push(() => resolve("old"))));
    await tower.start();
    const first = await tower.run("greet");
    await until("it began", () => release.length === 1);

    const again = tower.task("greet", { schedule: every("2h"), group: "fresh" }, () => "new");
    const { store } = await tower.open();
    const stored = async () => (await store.tasks.byName("greet")).definition;
    await until("it is stored", async () => (await stored()).group === "fresh");
    expect(await (await again.enqueue()).result({ timeout: "60s" })).toBe("new");
    expect((await stored()).schedule).toMatchObject({ everyMs: 7_200_000 });
    release[0]?.();
    expect(await first.result({ timeout: "60s" }), "what had begun ends as it began").toBe("old");
    expect(lines.filter(({ level }) => level === "warn" || level === "error")).toEqual([]);

    tower.task("greet", { schedule: every("1h") }, () => "old again");
    tower.task("greet", { schedule: every("3h") }, () => "newest");
    await until("the last one is stored", async () => {
      const { schedule } = await stored();
      return schedule.type === "every" && schedule.everyMs === 3 * 3_600_000;
    });
    tower.task("greet", { schedule: every("1h") }, () => "undone");
    await until("an edit that is undone is stored, too", async () => {
      const { schedule } = await stored();
      return schedule.type === "every" && schedule.everyMs === 3_600_000;
    });
    expect(await (await tower.run("greet")).result({ timeout: "60s" })).toBe("undone");
  });

  test("may be redefined before the process starts, and in a producer", async () => {
    const { tower } = make();
    for (const result of [1, 2]) tower.task("early", {}, () => result);
    for (let again = 0; again < 2; again++) tower.producer(taskType("elsewhere"));
    await tower.start();
    expect(await (await tower.run("early")).result({ timeout: "60s" })).toBe(2);
  });
});
