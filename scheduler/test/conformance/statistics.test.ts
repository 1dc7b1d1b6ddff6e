import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Verdict } from "../../src/run/claim-store.ts";
import { statisticsBack } from "../../src/store/postgres/statistics/statistics.ts";
import { hourMs, statisticsOf } from "../../src/task/statistics/statistics.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { everyPostgres } from "../support/servers.ts";
import { openStage, type Stage, settlement, succeededVerdict } from "../support/store-stage.ts";

const failedVerdict: Verdict = { kind: "ended", outcome: "failed", result: null, error: '{"message":"no"}' };
const dayMs = 24 * hourMs;

describe.each(everyPostgres())("statistics on $title", (server) => {
  let stage: Stage;
  let session: number;
  beforeAll(async () => {
    stage = await openStage(server);
    session = await stage.session("worker");
    await stage.store.history.rotate(stage.nowMs, dayMs);
    await stage.store.statistics.addTimes(stage.nowMs, 1);
  });
  afterAll(() => stage.close());

  let groups = 0;
  const made = (name: string, options = {}) => stage.task(name, { group: `g${++groups}`, ...options });

  /** Lets runs of the task start at `startedMs`, `lateMs` after they were due, and end `tookMs` later with these verdicts. */
  async function ended(task: TaskRecord, verdicts: Verdict[], { startedMs, lateMs = 0, tookMs = 0 }: Ended) {
    await stage.store.runs.enqueue(
      verdicts.map(() => stage.write(task, { dueMs: startedMs - lateMs })),
      startedMs - lateMs,
    );
    const runs = await stage.claim(session, [task], startedMs);
    const endedMs = startedMs + tookMs;
    const items = runs.map((run, i) => ({ ...settlement(run, verdicts[i] as Verdict, endedMs), startedMs }));
    await stage.store.claims.settle(session, items, endedMs);
    return endedMs;
  }
  interface Ended {
    startedMs: number;
    lateMs?: number;
    tookMs?: number;
  }

  const fold = async (hour: number) => {
    while ((await stage.store.tasks.foldCounters(1_000, hour)) > 0);
  };
  const hourOf = (ms: number) => Math.floor(ms / hourMs);
  const read = (
    { taskId }: TaskRecord,
    nowMs: number,
    by: "hour" | "day" | "month" = "hour",
    sinceMs = stage.nowMs - dayMs,
  ) => statisticsOf(stage.store.statistics, taskId, { by, sinceMs, nowMs });

  it("count each end, including runs without history, in the hour in which it was counted", async () => {
    const task = await made("counted", { history: "failures" });
    const first = Math.ceil(stage.nowMs / hourMs) * hourMs;
    await ended(task, [succeededVerdict, succeededVerdict, failedVerdict], { startedMs: first });
    const fresh = await read(task, first);
    expect(fresh.periods, "before anything is folded").toMatchObject([
      { fromMs: first, counts: { succeeded: 2, failed: 1, missed: 0 } },
    ]);
    await fold(hourOf(first));
    expect((await read(task, first)).periods).toEqual(fresh.periods);
    await ended(task, [succeededVerdict], { startedMs: first + hourMs });
    await ended(task, [failedVerdict, failedVerdict], { startedMs: first + hourMs });
    await fold(hourOf(first) + 1);
    await ended(task, [succeededVerdict], { startedMs: first + 3 * hourMs });
    const { periods } = await read(task, first + 3 * hourMs);
    expect(periods.map(({ fromMs, counts: { succeeded, failed } }) => [fromMs - first, succeeded, failed])).toEqual([
      [0, 2, 1],
      [hourMs, 1, 2],
      [3 * hourMs, 1, 0],
    ]);
    const days = await read(task, first + 3 * hourMs, "month", 0);
    expect(days.periods.reduce((sum, { counts }) => sum + counts.succeeded + counts.failed, 0)).toBe(7);
    const last = await read(task, first + 3 * hourMs, "hour", first + hourMs);
    expect(
      last.periods.map(({ counts: { succeeded } }) => succeeded),
      "from the second hour on",
    ).toEqual([1, 1]);
  });

  it("add each run's duration and lateness once, by however many processes and in however many slices", async () => {
    const task = await made("timed");
    const startedMs = stage.nowMs + 10_000;
    for (let i = 0; i < 10; i++)
      await ended(task, [succeededVerdict, succeededVerdict], {
        startedMs: startedMs + 1_000 * i,
        lateMs: 200,
        tookMs: 100,
      });
    await ended(task, [failedVerdict], { startedMs: startedMs + 11_000, tookMs: 5_000 });
    const untilMs = startedMs + 20_000;
    const addAll = async () => {
      for (let addedMs = 0; addedMs < untilMs; ) addedMs = await stage.store.statistics.addTimes(untilMs, 1_500);
    };
    await Promise.all([addAll(), addAll(), addAll()]);
    const { periods, timesUntilMs } = await read(task, untilMs, "day");
    expect(timesUntilMs).toBe(untilMs);
    expect(periods).toHaveLength(1);
    expect(periods[0]?.took).toEqual({ runs: 21, mean: 333, p50: 100, p90: 100, p99: 5_000, most: 5_000 });
    expect(periods[0]?.late).toMatchObject({ runs: 21, p50: 200, most: 200 });
  });

  it("merge old hours into days, and delete old days, without changing a sum", async () => {
    const task = await made("merged");
    const dayOf = Math.ceil(stage.nowMs / dayMs) * 24;
    let startedMs = dayOf * hourMs;
    await stage.store.history.rotate(startedMs + 3 * dayMs, 30 * dayMs);
    for (let hour = dayOf; hour < dayOf + 60; hour += 5) {
      startedMs = hour * hourMs;
      await ended(task, [succeededVerdict, failedVerdict], { startedMs, tookMs: 50 });
      await fold(hour);
    }
    const nowMs = startedMs + 60_000;
    for (let addedMs = 0; addedMs < nowMs; ) addedMs = await stage.store.statistics.addTimes(nowMs, dayMs);
    const all = (by: "day" | "month") => read(task, nowMs, by, dayOf * hourMs);
    const before = await all("day");
    expect(before.periods.map(({ counts, took }) => [counts.succeeded, counts.failed, took?.runs])).toEqual([
      [5, 5, 10],
      [5, 5, 10],
      [2, 2, 4],
    ]);
    await stage.store.statistics.merge(dayOf + 48, dayOf - 24);
    expect(await all("day")).toEqual(before);
    expect(
      await stage.rows("select hour from $s.task_counts where task_id = $1 and hour < $2 order by 1", [
        task.taskId,
        dayOf + 48,
      ]),
    ).toHaveLength(2);
    const hours = await read(task, nowMs, "hour", dayOf * hourMs);
    expect(
      hours.periods.map(({ fromMs, counts, took }) => [fromMs / hourMs - dayOf, counts.succeeded, took?.runs]),
      "merged days are whole, later hours are hours",
    ).toEqual([
      [0, 5, 10],
      [24, 5, 10],
      [50, 1, 2],
      [55, 1, 2],
    ]);
    await stage.store.statistics.merge(dayOf + 48, dayOf + 24);
    const after = await all("day");
    expect(after.periods.at(-1), "the last day").toEqual(before.periods.at(-1));
    const kept = await read(task, nowMs, "day", (dayOf + 24) * hourMs);
    expect(kept.periods, "the days after the limit").toEqual(before.periods.slice(1));
  });

  it("after cluster time went back, later counts belong to the present hour, and each duration counts once", async () => {
    const task = await made("ahead");
    const nowMs = Math.ceil(stage.nowMs / dayMs) * dayMs + 10 * dayMs + 60_000;
    const aheadMs = nowMs + 20 * hourMs;
    await stage.store.history.rotate(nowMs, 30 * dayMs);
    await stage.store.history.rotate(aheadMs, 30 * dayMs);
    const addAll = async (untilMs: number) => {
      for (let addedMs = 0; addedMs < untilMs; ) addedMs = await stage.store.statistics.addTimes(untilMs, dayMs);
    };
    await ended(task, [succeededVerdict], { startedMs: nowMs, tookMs: 10 });
    await fold(hourOf(nowMs));
    await ended(task, [succeededVerdict], { startedMs: aheadMs, tookMs: 10 });
    await fold(hourOf(aheadMs));
    await addAll(aheadMs + 60_000);
    const client = await stage.sql.connect();
    await statisticsBack(client, stage.schema, nowMs + 1_000);
    client.release();
    await ended(task, [succeededVerdict], { startedMs: nowMs + 2_000, tookMs: 10 });
    await fold(hourOf(nowMs));
    await addAll(nowMs + 60_000);
    const { periods } = await read(task, nowMs + 60_000);
    expect(periods.map(({ counts, took }) => [counts.succeeded, took?.runs])).toEqual([[3, 2]]);
    await addAll(aheadMs + 60_000);
    const later = await read(task, aheadMs + 60_000);
    expect(later.periods.map(({ took }) => took?.runs)).toEqual([2, 1]);
  });

  it("skip a time without ends in one call, however long it is, and miss no run after it", async () => {
    const task = await made("seldom");
    const { addTimes } = stage.store.statistics;
    const quietMs = stage.nowMs + 60 * dayMs;
    for (let addedMs = 0; addedMs < quietMs; ) addedMs = await addTimes(quietMs, dayMs);
    const startedMs = quietMs + 3 * dayMs;
    await stage.store.history.rotate(startedMs, null, 0);
    for (const lateMs of [0, 5_000]) await ended(task, [failedVerdict], { startedMs: startedMs + lateMs, tookMs: 10 });
    const untilMs = startedMs + 30 * dayMs;
    expect(await addTimes(untilMs, 1_000), "up to 1 s after the first end").toBe(startedMs + 10 + 1_000);
    expect(await addTimes(untilMs, 1_000), "up to 1 s after the second end").toBe(startedMs + 5_010 + 1_000);
    expect(await addTimes(untilMs, 1_000), "to the end").toBe(untilMs);
    const { periods } = await read(task, untilMs, "day", quietMs);
    expect(periods.flatMap(({ took }) => took?.runs ?? [])).toEqual([2]);
  });
});
