import { expect, test } from "vitest";
import { systemClock } from "../base/clock.ts";
import { CarillonError } from "../base/errors.ts";
import type { Figures } from "../store/figures.ts";
import type { Store } from "../store/store.ts";
import { Metrics, type ProcessState } from "./metrics.ts";

test("while the store is away, cluster metrics are absent instead of stale or zero", async () => {
  const figures = {
    ended: { succeeded: 3 },
    live: { ready: 1 },
    oldest: [{ group: "mine", dueMs: 0 }],
    groups: [{ group: "billing/gpu", workers: 2, capacity: 20 }],
    leadership: { term: 7, led: true },
    snapshots: [{ kind: "slot", holder: "standby_1", ms: null, transactions: 4 }],
  } as unknown as Figures;
  let now = 0;
  const metrics = new Metrics({ ...systemClock, monotonic: () => now });
  const scrape = async (read: () => Promise<Figures>) => {
    now += 60_000;
    const { text } = await metrics.read({
      store: { figures: { read } } as unknown as Store,
      nowMs: 1,
      term: null,
      unreadable: 0,
      trusted: null,
      worker: null,
    });
    return text.split("\n").filter((line) => /^carillon_(ended|runs|queue|group|term|led|store_up|oldest)/.test(line));
  };
  const there = await scrape(async () => figures);
  expect(there).toEqual([
    'carillon_ended_total{outcome="succeeded"} 3',
    'carillon_runs{state="ready"} 1',
    'carillon_queue_age_seconds{group="mine"} 0.001',
    'carillon_group_workers{carillon_namespace="billing",group="billing/gpu"} 2',
    'carillon_group_capacity{carillon_namespace="billing",group="billing/gpu"} 20',
    'carillon_oldest_snapshot_transactions{kind="slot"} 4',
    "carillon_term 7",
    "carillon_led 1",
    "carillon_store_up 1",
  ]);
  const away = () => Promise.reject(new CarillonError("STORE_UNREACHABLE", "away"));
  expect(await scrape(away)).toEqual(["carillon_store_up 0"]);
  expect(await scrape(async () => figures)).toEqual(there);
});

test("a process exports the metrics of its own roles only", async () => {
  const metrics = new Metrics(systemClock);
  const own = async (state: ProcessState) =>
    (await metrics.own(state)).text.split("\n").filter((line) => /^carillon_(?:session|worker|exhausted)/.test(line));
  expect(await own({ trusted: null, worker: null })).toEqual(["carillon_exhausted_total 0"]);
  const ended = { runId: 1, task: "t", slotMs: null, dueMs: 0, readyMs: 0, startedMs: 0, endedMs: 1, error: "no" };
  for (const attempt of [1, 2, 3]) metrics.notice({ ...ended, kind: "ended", attempt, outcome: "failed" });
  metrics.notice({ ...ended, kind: "ended", attempt: 2, outcome: "succeeded" });
  metrics.notice({ ...ended, kind: "retry", attempt: 2, outcome: "failed" });
  expect(await own({ trusted: false, worker: { held: 3, concurrency: 10 } })).toEqual([
    "carillon_exhausted_total 2",
    "carillon_session_trusted 0",
    "carillon_worker_concurrency 10",
    "carillon_worker_held 3",
  ]);
  expect(await own({ trusted: true, worker: null })).toEqual([
    "carillon_exhausted_total 2",
    "carillon_session_trusted 1",
  ]);
});

test("of the groups that the store tells of, the first fifty are shown by name, and the next as the others", async () => {
  const groups = Array.from({ length: 51 }, (_, n) => ({ group: `g${n}`, workers: n, capacity: n }));
  const oldest = groups.map(({ group, workers }) => ({ group, dueMs: workers - 60_000 }));
  const figures = { ended: {}, live: {}, oldest, groups, leadership: { term: 1, led: true }, snapshots: [] };
  const store = { figures: { read: async () => figures as unknown as Figures } } as unknown as Store;
  const { text } = await new Metrics(systemClock).read({
    store,
    nowMs: 1,
    term: null,
    unreadable: 0,
    trusted: true,
    worker: null,
  });
  const shown = (metric: string) => text.split("\n").filter((line) => line.startsWith(`${metric}{`));
  const [workers, ages] = [shown("carillon_group_workers"), shown("carillon_queue_age_seconds")];
  expect([workers.length, ages.length]).toEqual([51, 51]);
  expect(workers[0]).toBe('carillon_group_workers{carillon_namespace="default",group="g0"} 0');
  expect(workers.at(-1)).toBe('carillon_group_workers{carillon_namespace="(others)",group="(others)"} 50');
  expect(ages[0]).toBe('carillon_queue_age_seconds{group="g0"} 60.001');
  expect(ages.at(-1)).toBe('carillon_queue_age_seconds{group="(others)"} 59.951');
});
