import { expect, test } from "vitest";
import { systemClock } from "../base/clock.ts";
import { CarillonError } from "../base/errors.ts";
import type { Figures } from "../store/figures.ts";
import type { Store } from "../store/store.ts";
import { Metrics } from "./metrics.ts";

test("while the store is away, what is of the cluster is absent, not old and not 0", async () => {
  const figures = {
    ended: { succeeded: 3 },
    live: { ready: 1 },
    oldest: [{ group: "mine", dueMs: 0 }],
    leadership: { term: 7, led: true },
    snapshots: [{ kind: "slot", holder: "standby_1", ms: null, transactions: 4 }],
  } as unknown as Figures;
  let now = 0;
  const metrics = new Metrics({ ...systemClock, monotonic: () => now });
  const scrape = async (read: () => Promise<Figures>) => {
    now += 60_000;
    const text = await metrics.text({
      store: { figures: { read } } as unknown as Store,
      nowMs: 1,
      term: null,
      unreadable: 0,
    });
    return text.split("\n").filter((line) => /^carillon_(ended|runs|queue|term|led|store_up|oldest)/.test(line));
  };
  const there = await scrape(async () => figures);
  expect(there).toEqual([
    'carillon_ended_total{outcome="succeeded"} 3',
    'carillon_runs{state="ready"} 1',
    'carillon_queue_age_seconds{group="mine"} 0.001',
    'carillon_oldest_snapshot_transactions{kind="slot"} 4',
    "carillon_term 7",
    "carillon_led 1",
    "carillon_store_up 1",
  ]);
  const away = () => Promise.reject(new CarillonError("STORE_UNREACHABLE", "away"));
  expect(await scrape(away)).toEqual(["carillon_store_up 0"]);
  expect(await scrape(async () => figures)).toEqual(there);
});
