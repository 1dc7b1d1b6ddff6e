import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { carillon } from "../../src/library/carillon.ts";
import { cron, every } from "../../src/schedule/schedule.ts";
import { defineTask } from "../../src/task/task.ts";
import { ApiStage } from "../support/api-stage.ts";
import { postgres } from "../support/servers.ts";
import { until } from "../support/store-stage.ts";

/** Parses metrics in text format into a map from name with labels, such as `name{label="value"}`, to value. */
const samples = (text: string): Map<string, number> =>
  new Map(
    text
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"))
      .map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ") + 1))]),
  );

describe("metrics", () => {
  const stage = new ApiStage();
  beforeAll(async () => {
    await stage.open();
  });
  afterAll(() => stage.close());

  const scrape = async (authorization?: string) =>
    fetch(`${stage.urlOf()}/metrics`, authorization === undefined ? {} : { headers: { authorization } });

  it("are served to global viewers, in the Prometheus format, and to no other caller", async () => {
    expect((await scrape()).status).toBe(401);
    expect((await scrape("Bearer nonsense")).status).toBe(401);
    expect((await scrape(`Bearer ${await stage.key("prometheus")}`)).status, "a worker's key").toBe(401);
    const answer = await scrape(`Bearer ${stage.tokens.viewer}`);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/);
    const found = samples(await answer.text());
    expect(found.get("carillon_store_up")).toBe(1);
    expect(found.get("carillon_leader")).toBe(found.get("carillon_led"));
    for (const name of ["nodejs_eventloop_lag_p99_seconds", "process_resident_memory_bytes"])
      expect(found.has(name)).toBe(true);
    expect(found.get('carillon_beat_seconds_count{result="ok"}')).toBeGreaterThan(0);
    expect(found.get('carillon_store_seconds_count{part="sessions",result="ok"}')).toBeGreaterThan(0);
  });

  it("match the ledger's slots, the store's counts of ends, and the lateness of each start", async () => {
    const tower = carillon({
      store: postgres().url,
      schema: stage.schema,
      metrics: true,
      scheduler: false,
      handleSignals: false,
      groups: ["mine"],
      concurrency: 7,
    });
    try {
      tower.task("works", { group: "mine" }, () => 1);
      tower.task("breaks", { group: "mine", retry: { attempts: 2, delay: 1 } }, () => {
        throw new Error("no");
      });
      await tower.start();
      await Promise.all([...Array.from({ length: 3 }, () => tower.run("works")), tower.run("breaks")]);
      const read = async () => samples((await tower.metrics()).text);
      await until("all ended", async () => {
        const found = await read();
        return (
          found.get('carillon_attempt_seconds_count{outcome="succeeded"}') === 3 &&
          found.get('carillon_attempt_seconds_count{outcome="failed"}') === 1
        );
      });
      const found = await read();
      expect(found.get("carillon_run_lateness_seconds_count")).toBe(4);
      expect(found.get('carillon_attempt_seconds_count{outcome="retried"}')).toBe(1);
      await until("the figures are new", async () => {
        const figures = await read();
        const ended = (outcome: string) => figures.get(`carillon_ended_total{outcome="${outcome}"}`);
        return ended("succeeded") === 3 && ended("failed") === 1;
      });
      const later = await read();
      expect(later.get('carillon_ended_total{outcome="retried"}')).toBe(1);
      expect(later.get("carillon_exhausted_total")).toBe(1);
      expect([later.get("carillon_session_trusted"), later.get("carillon_worker_concurrency")]).toEqual([1, 7]);
      const mine = '{carillon_namespace="default",group="mine"}';
      const ofGroup = () => ["workers", "capacity"].map((name) => later.get(`carillon_group_${name}${mine}`));
      expect(ofGroup()).toEqual([1, 7]);
      expect(later.get("carillon_term")).toBeGreaterThan(0);
      expect([later.get("carillon_led"), later.get("carillon_leader")]).toEqual([1, 0]);
    } finally {
      await tower.stop();
    }
  });

  it("count slots by their decision, and the age of unclaimed runs, with no label per task", async () => {
    const { store } = stage;
    const { ms: nowMs } = await store.clock();
    await stage.server.save(defineTask("ticks", { schedule: every("1s"), group: "nobody" }));
    await stage.server.save(
      defineTask("dark", {
        schedule: every("1s"),
        group: "nobody",
        blackout: [
          { from: "00:00", to: "23:59" },
          { from: "23:00", to: "01:00" },
        ],
      }),
    );
    await stage.server.save(defineTask("yearly", { schedule: cron("0 0 1 1 *") }));
    const read = async () => samples((await stage.server.metrics()).text);
    await until("slots of both kinds are planned", async () => {
      const found = await read();
      return (
        (found.get('carillon_slots_total{outcome="run"}') ?? 0) > 5 &&
        (found.get('carillon_slots_total{outcome="skipped"}') ?? 0) > 5
      );
    });
    const figures = await store.figures.read(nowMs + 60_000);
    expect(figures.oldest.find(({ group }) => group === "nobody")?.dueMs).toBeGreaterThan(nowMs - 5_000);
    expect(figures.live.ready).toBeGreaterThan(5);
    const found = await read();
    expect(found.get('carillon_group_workers{carillon_namespace="default",group="nobody"}')).toBe(0);
    expect([found.get("carillon_session_trusted"), found.has("carillon_worker_concurrency")]).toEqual([1, false]);
    const change = { author: "test", reason: "", nowMs };
    for (const task of ["ticks", "dark"]) await store.tasks.pause(task, change);
    await until("a group whose tasks are all paused is none", async () =>
      [...(await read()).keys()].every((name) => !name.startsWith("carillon_group_") || !name.includes('"nobody"')),
    );
    expect((await stage.server.metrics()).text).not.toMatch(/ticks|yearly/);
  });

  it("show up to a fixed number of groups", async () => {
    const { ms: nowMs } = await stage.store.clock();
    for (let n = 0; n < 55; n++) {
      const { record } = await stage.server.save(defineTask(`g${n}`, { group: `group-${n}` }));
      const plain = { payload: null, key: null, priority: null, source: "enqueue" as const };
      await stage.store.runs.enqueue([{ taskId: record.taskId, dueMs: nowMs - 1_000 - n, ...plain }], nowMs);
    }
    await until("the figures are new", async () => {
      const ages = [...samples((await stage.server.metrics()).text).keys()].filter((name) =>
        name.startsWith("carillon_queue_age_seconds{"),
      );
      return ages.length === 51 && ages.includes('carillon_queue_age_seconds{group="(others)"}');
    });
    const { oldest, groups } = await stage.store.figures.read(nowMs);
    expect([oldest.length, groups.length]).toEqual([51, 51]);
    expect(oldest.slice(0, 2).map(({ group }) => group)).toEqual(["group-54", "group-53"]);
    expect(groups.filter(({ workers }) => workers > 0)).toEqual([]);
  });

  it("cannot be read if metrics are off", async () => {
    const tower = carillon({ store: postgres().url, schema: stage.schema });
    await expect(tower.metrics()).rejects.toMatchObject({
      code: "OPTION_INVALID",
      hint: expect.stringContaining("metrics: true"),
    });
    await tower.stop();
  });
});
