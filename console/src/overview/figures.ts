import { useRef } from "react";
import { useAnswer } from "../api/answers.ts";
import { useNow } from "../now.ts";
import { latenessOf } from "./lateness.ts";

/** A run counts as overdue once it has been due for longer than this; a normal start takes less. */
const overdueMs = 2_000;
const hourMs = 3_600_000;
export const endedShown = 200;
const everyMs = 3_000;
const alarmsShown = 100;

/** A number of rows; `isMore` is true if further pages were not counted. */
export interface Counted {
  n: number;
  isMore: boolean;
}

type Page<Row> = { items: Row[]; next: string | null } | undefined;

const rowsOf = <Row>(page: Page<Row>): Row[] => page?.items ?? [];
const hasNext = (page: Page<unknown>) => (page?.next ?? null) !== null;
const sumOf = <Row>(page: Page<Row>, of: (row: Row) => number): Counted => ({
  n: rowsOf(page).reduce((sum, row) => sum + of(row), 0),
  isMore: hasNext(page),
});

export type Figures = ReturnType<typeof useFigures>;

/** Reads and counts what the overview shows, except the latest changes. */
export function useFigures() {
  const now = useNow();
  // The last hour is rounded to whole minutes, because otherwise each second would need a new request.
  const since = new Date(Math.floor(now / 60_000) * 60_000 - hourMs).toISOString();
  const live = useAnswer("listRuns", { state: ["claimed", "undecided"], limit: 200 }, { everyMs });
  const ready = useAnswer("listRuns", { state: ["ready"], limit: 100 }, { everyMs });
  const ended = useAnswer("listRuns", { state: ["succeeded", "failed", "cancelled"], limit: endedShown }, { everyMs });
  const asked = useAnswer("listRuns", { state: ["failed"], since, limit: 100 }, { keep: true });
  // The request changes every minute; until the new request is answered, the previous answer is shown.
  const answered = useRef(asked.data);
  if (asked.data) answered.current = asked.data;
  const failed = { data: asked.data ?? answered.current, error: asked.error, refetch: asked.refetch };
  const dead = useAnswer("listDeadGroups", {});
  const coming = useAnswer("listComing", { count: 20 }, { everyMs: 10_000 });
  const groups = useAnswer("listGroups", { limit: 200 }, { everyMs: 5_000 });
  const workers = useAnswer("listWorkers", { limit: 200 }, { everyMs: 5_000 });
  const alarms = useAnswer("listAlarms", { limit: alarmsShown }, { everyMs: 5_000 });
  const cluster = useAnswer("getCluster", {}, { everyMs: 15_000 });

  // Runs are compared with the time of the last answer: while no server answers, `now` advances and every run would look overdue.
  const saidMs = now - (ready.dataUpdatedAt > 0 ? Math.max(0, Date.now() - ready.dataUpdatedAt) : 0);
  const overdueRuns = rowsOf(ready.data).filter(({ due }) => Date.parse(due) < saidMs - overdueMs);
  const lateness = rowsOf(ended.data)
    .flatMap((run) => latenessOf(run) ?? [])
    .sort((a, b) => a - b);
  return {
    now,
    ready,
    live,
    ended,
    failed,
    dead,
    coming,
    groups,
    workers,
    alarms,
    cluster,
    // Runs are sorted by due time: if one run of the page is not overdue, no run of the next page is overdue.
    overdue: { n: overdueRuns.length, isMore: overdueRuns.length === ready.data?.items.length && hasNext(ready.data) },
    overdueRuns,
    /** The time of the answer with which overdue runs were compared. */
    saidMs,
    running: sumOf(live.data, ({ state }) => (state === "claimed" ? 1 : 0)),
    undecided: sumOf(live.data, ({ state }) => (state === "undecided" ? 1 : 0)),
    failures: sumOf(failed.data, () => 1),
    // An alarm that is acknowledged or silenced needs no attention.
    alarming: sumOf(alarms.data, (one) => (one.acknowledged || one.silencedUntil ? 0 : 1)),
    waiting: sumOf(groups.data, (group) => group.waiting),
    working: sumOf(workers.data, () => 1),
    capacity: sumOf(workers.data, (worker) => worker.capacity ?? 0),
    letters: dead.data?.total.letters ?? 0,
    measured: lateness.length,
    /** The 99th percentile of the start delays, in ms; null if none is known. */
    lateMost: lateness[Math.floor(lateness.length * 0.99)] ?? null,
    isAlone: workers.data !== undefined && workers.data.items.length === 0,
  };
}
