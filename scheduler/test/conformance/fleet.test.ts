/** Tests reads for a cluster with many tasks: groups in pages, and tasks grouped by when they fire. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cron, every } from "../../src/schedule/schedule.ts";
import { allGroups } from "../../src/task/group-store.ts";
import type { TaskOptions } from "../../src/task/task.ts";
import { everyPostgres } from "../support/servers.ts";
import { change, openStage, type Stage } from "../support/store-stage.ts";

describe.each(everyPostgres())("many tasks and groups on $title", (server) => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await openStage(server);
  });
  afterAll(() => stage.close());

  it("lists groups in pages, each group once, in the requested namespaces", async () => {
    for (const name of ["b", "a", "ns/c", "ns/a", "other/a", "d"]) await stage.task(`in-${name}`, { group: name });
    const all = (await stage.store.groups.list(stage.nowMs, allGroups)).map(({ name }) => name);
    expect([...all].sort()).toEqual(["a", "b", "d", "ns/a", "ns/c", "other/a"]);
    const paged: string[] = [];
    for (;;) {
      const page = { ...allGroups, afterName: paged.at(-1) ?? "", limit: 2 };
      const found = await stage.store.groups.list(stage.nowMs, page);
      expect(found.every(({ tasks }) => tasks === 1)).toBe(true);
      paged.push(...found.map(({ name }) => name));
      if (found.length < 2) break;
    }
    expect(paged).toEqual(all);
    const of = async (...namespaces: string[]) =>
      (await stage.store.groups.list(stage.nowMs, { ...allGroups, namespaces })).map(({ name }) => name).sort();
    expect([await of("ns"), await of("ns", "other"), await of("default"), await of()]).toEqual([
      ["ns/a", "ns/c"],
      ["ns/a", "ns/c", "other/a"],
      ["a", "b", "d"],
      [],
    ]);
  });

  it("collects the tasks that fire at the same times, and no others", async () => {
    const daily = cron("0 3 * * *");
    const calendar = { zone: "UTC", weekend: [0, 6], holidays: [] };
    await stage.store.calendars.set("bank", calendar, change(stage.nowMs));
    const given: Record<string, TaskOptions> = {
      a: { schedule: daily },
      b: { schedule: daily, group: "elsewhere", retry: 3 },
      zone: { schedule: cron("0 3 * * *", { zone: "Asia/Tokyo" }) },
      every: { schedule: every("1h") },
      "every-2": { schedule: every("1h") },
      calendar: { schedule: daily, calendar: { name: "bank" } },
      blackout: { schedule: daily, blackout: [{ from: "01:00", to: "02:00" }] },
      "jitter-1": { schedule: cron("0 3 * * *", { jitter: "5m" }) },
      "jitter-2": { schedule: cron("0 3 * * *", { jitter: "5m" }) },
      paused: { schedule: daily },
      "paused-until": { schedule: daily },
      removed: { schedule: daily },
    };
    for (const [name, options] of Object.entries(given)) await stage.task(`fire/${name}`, options);
    const { tasks } = stage.store;
    await tasks.pause("fire/paused", change(stage.nowMs));
    await tasks.pause("fire/paused-until", { ...change(stage.nowMs), untilMs: stage.nowMs + 3_600_000 });
    await tasks.remove("fire/removed", change(stage.nowMs));
    const gathered = async (filter: { group?: string; matching?: string } = {}, namespaces: string[] | null = null) => {
      const { group = null, matching = null } = filter;
      const found = await stage.store.browse.alikeTasks({ group, matching, namespaces });
      for (const { task, names } of found) expect(names.split(" ")).toContain(task.name);
      for (const { count, names } of found) expect(names.split(" ")).toHaveLength(count);
      return found.map(({ names }) => names.replaceAll("fire/", "").split(" ").sort().join(" ")).sort();
    };
    expect(await gathered({}, ["fire"])).toEqual([
      "a b",
      "blackout",
      "calendar",
      "every every-2",
      "jitter-1",
      "jitter-2",
      "paused",
      "paused-until",
      "zone",
    ]);
    expect(await gathered({ matching: "fire/*-2" })).toEqual(["every-2", "jitter-2"]);
    expect(await gathered({ group: "elsewhere" })).toEqual(["b"]);
    expect(await gathered({}, ["nowhere"])).toEqual([]);
    const one = (await stage.store.browse.alikeTasks({ group: null, matching: "fire/calendar", namespaces: null }))[0];
    expect(one?.task.calendar).toMatchObject({ name: "bank", weekend: [0, 6] });
  });
});
