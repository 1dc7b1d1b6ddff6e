import type { Why } from "../base/change.ts";
import { formatDuration, parseDuration } from "../base/duration.ts";
import { CarillonError } from "../base/errors.ts";
import type { Json } from "../base/json.ts";
import { checkNames } from "../base/nearest.ts";
import { labelsOf } from "../run/enqueue-options.ts";
import { keyNeedsTask, liveStates, outcomes, type RunSource, runSources } from "../run/run.ts";
import { resultOf } from "../run/run-end.ts";
import type { Enqueued, LogLine, RunMatch, RunRecord } from "../run/run-record.ts";
import { placeOfRun, type RunPlace } from "../store/browse-store.ts";
import { followed } from "../store/followed-run.ts";
import { awaitRecall } from "../store/recall.ts";
import type { Acting } from "./acts/acting.ts";
import { eventsOf, type RunEvent } from "./acts/run-events.ts";
import { AwaitedEnds } from "./awaited-ends.ts";
import type { Codecs } from "./payloads/codecs.ts";
import { EnqueuedRun, type HandledRuns, type ResultOptions, type RunHandle } from "./run-handle.ts";

export interface RunsFilter {
  /** The task's name. It may be the name of a task that was removed. */
  task?: string;
  /** Default: all states. */
  states?: RunRecord["state"][];
  /** Only live runs that are due at or after this time, and ended runs that ended at or after it. */
  since?: Date;
  /** Only live runs that are due before this time, and ended runs that ended before it. */
  until?: Date;
  /** Only runs of the tasks of this group. */
  group?: string;
  /** Only runs of the tasks in this namespace. */
  namespace?: string;
  /** Only runs with this key; requires `task`, because a key is unique only within its task. */
  key?: string;
  /** Only runs with this origin: a slot, an enqueue, a start by hand, or another run. */
  source?: RunSource;
  /** Only runs with all of these labels. */
  labels?: Record<string, string>;
}

export interface RunsPage {
  /** Live runs first, ordered by due time; then ended runs, latest end first. */
  items: RunSummary[];
  /** The value of `cursor` for the next page; null if this page is the last one. */
  next: string | null;
}

export interface RunsCount {
  runs: number;
  more: boolean;
}

/** A run's record without its payload, progress and result. The error has only its code and message. */
export type RunSummary = Omit<RunRecord, "payload" | "progress" | "result">;

export interface RunsOptions extends Acting {
  codecs: Codecs;
  /** Returns the store's time in epoch milliseconds. */
  now: () => number;
}

const pageDefault = 50;
const pageMost = 1_000;
const countMost = 10_000;

/**
 * Returns a function that returns false for a run that it has already seen as a live run. A run that ends between two queries is in
 * both results, because lists contain the live runs before the ended runs.
 */
function onceEach(): (run: Pick<RunRecord, "runId" | "state">) => boolean {
  const live = new Set<number>();
  return ({ runId, state }) => {
    if (live.has(runId)) return false;
    if ((liveStates as readonly string[]).includes(state)) live.add(runId);
    return true;
  };
}
/**
 * The maximum number of queries for one page. It takes effect if no index can select the runs, so that many runs are read to find
 * one that matches.
 */
const looksMost = 10;
const logsDefault = 1_000;
/**
 * A success of a task that stores no successes leaves only a small record (a trace). For this time after the run's end, in ms, the trace is
 * still searched.
 */
const tracedMs = 600_000;

/** Converts a Date to epoch milliseconds. @throws OPTION_INVALID if it is not a valid Date */
export function timeOf(end: "since" | "until", date: Date): number {
  const ms = date?.getTime?.();
  if (ms !== undefined && !Number.isNaN(ms)) return ms;
  throw new CarillonError("OPTION_INVALID", `${end} is no time`, { path: end, hint: "Give a Date." });
}

const cursorAt = ({ phase, atMs, runId }: RunPlace): string => [phase, atMs, runId].join(" ");

/** Converts a filter to the conditions of a query. @throws OPTION_INVALID */
function matchOf({ task, group, namespace, key, source, ...given }: RunsFilter): RunMatch {
  const texts = { group, namespace, key };
  for (const [path, text] of Object.entries(texts))
    if (text !== undefined && typeof text !== "string")
      throw new CarillonError("OPTION_INVALID", `${path} must be a text`, { path });
  if (source !== undefined && !runSources.includes(source))
    throw new CarillonError("OPTION_INVALID", `no run has the source ${JSON.stringify(source)}`, {
      path: "source",
      hint: `Give one of ${runSources.join(", ")}.`,
    });
  if (key !== undefined && task === undefined) throw keyNeedsTask();
  const labels = labelsOf(given);
  return {
    ...(group === undefined ? {} : { group }),
    ...(namespace === undefined ? {} : { namespaces: [namespace] }),
    ...(key === undefined ? {} : { key }),
    ...(source === undefined ? {} : { source }),
    ...(labels === null ? {} : { labels }),
  };
}

/** Parses a cursor. @throws OPTION_INVALID if the text is not a cursor */
function placeOf(cursor: string): RunPlace {
  const [phase, atMs, runId, ...more] = cursor.split(" ");
  const [at, id] = [Number(atMs), Number(runId)];
  if ((phase !== "live" && phase !== "ended") || !Number.isInteger(at) || !Number.isInteger(id) || more.length > 0)
    throw new CarillonError("OPTION_INVALID", "this cursor is of no list of runs", {
      path: "cursor",
      hint: "Give `next` of the page before.",
    });
  return { phase, atMs: at, runId: id };
}

/** Access to the runs of all tasks by their ids, wherever they are executed. */
export class Runs implements HandledRuns {
  readonly #options: RunsOptions;
  readonly #ends: AwaitedEnds;
  readonly #closing = new AbortController();

  constructor(options: RunsOptions) {
    this.#options = options;
    this.#ends = new AwaitedEnds({ ...options, open: async () => (await options.open()).store });
  }

  /** @internal Rejects all pending `result` calls with this reason, and ends all event streams. */
  close(why: unknown): void {
    this.#closing.abort(why);
    this.#ends.close(why);
  }

  /** @throws RUN_UNKNOWN */
  async get(runId: number): Promise<RunRecord> {
    const { store } = await this.#options.open();
    return this.#options.codecs.shown(await store.runs.find(runId));
  }

  /**
   * Returns a page of at most `limit` runs (default 50, maximum 1,000). A run that ends between two calls may be on both pages. A page may
   * be short or empty although `next` is set, because each call reads a limited number of runs. That happens with a filter by source, label
   * or key, or by a group or namespace with many tasks.
   * @throws TASK_UNKNOWN, OPTION_INVALID
   */
  async list(given: RunsFilter & { limit?: number; cursor?: string } = {}): Promise<RunsPage> {
    checkNames("a list of runs", given, [
      ...["task", "states", "since", "until", "group", "namespace", "key", "source", "labels", "limit", "cursor"],
    ]);
    const { limit = pageDefault, cursor, ...filter } = given;
    if (!Number.isInteger(limit) || limit < 1 || limit > pageMost)
      throw new CarillonError("OPTION_INVALID", `limit must be a whole number from 1 to ${pageMost}`, {
        path: "limit",
      });
    const { task, states = [...liveStates, ...outcomes] } = filter;
    const [sinceMs, untilMs] = (["since", "until"] as const).map((end) =>
      filter[end] === undefined ? undefined : timeOf(end, filter[end]),
    );
    const match = matchOf(filter);
    const { store } = await this.#options.open();
    const browse = {
      taskId: task === undefined ? null : await store.tasks.idOf(task),
      states,
      match,
      readyBeforeMs: null,
      sinceMs: sinceMs ?? null,
      untilMs: untilMs ?? null,
    };
    const rows: RunRecord[] = [];
    const isNew = onceEach();
    let place = cursor === undefined ? null : placeOf(cursor);
    for (let looks = 0; looks < looksMost && rows.length <= limit; looks++) {
      const page = await store.browse.runs({ ...browse, after: place, limit: limit + 1 - rows.length });
      rows.push(...page.runs.filter(isNew));
      place = page.next;
      if (place === null) break;
    }
    const items = rows.slice(0, limit).map(({ payload: _, progress: __, result: ___, ...summary }) => summary);
    const last = rows.length > limit ? placeOfRun(items.at(-1) as RunSummary) : place;
    return { items, next: last && cursorAt(last) };
  }

  /** Yields each matching run once, reading page by page. */
  async *each(filter: RunsFilter = {}): AsyncGenerator<RunSummary> {
    const isNew = onceEach();
    let after: { cursor?: string } | undefined = {};
    while (after) {
      const { items, next }: RunsPage = await this.list({ ...filter, limit: pageMost, ...after });
      yield* items.filter(isNew);
      after = next === null ? undefined : { cursor: next };
    }
  }

  /**
   * Counts the matching runs, up to `most` (default 10,000). The runs are read page by page, so counting costs as much as listing.
   * @returns the count; `more` is true if more than `most` runs match
   */
  async count(filter: RunsFilter = {}, { most = countMost }: { most?: number } = {}): Promise<RunsCount> {
    let runs = 0;
    for await (const _ of this.each(filter)) {
      if (runs === most) return { runs, more: true };
      runs++;
    }
    return { runs, more: false };
  }

  /**
   * Waits for the run's end.
   * @returns the handler's result
   * @throws the errors of `RunHandle.result`
   */
  async result(runId: number, { timeout, signal }: ResultOptions = {}): Promise<Json> {
    const { clock, now, codecs } = this.#options;
    const timeoutMs = timeout === undefined ? undefined : parseDuration(timeout, "timeout", 1);
    const over = new AbortController();
    const given = () => over.abort(signal?.reason);
    const late = (ms: number) =>
      over.abort(
        new CarillonError("RESULT_TIMEOUT", `run ${runId} did not end within ${formatDuration(ms)}`, {
          hint: "It goes on.",
        }),
      );
    if (signal?.aborted) given();
    signal?.addEventListener("abort", given, { once: true });
    const cancel = timeoutMs === undefined ? undefined : clock.after(timeoutMs, () => late(timeoutMs));
    try {
      const end = await this.#ends.wait(runId, now() - tracedMs, over.signal);
      return await codecs.decoded(resultOf(end), end.task ?? "", `the result of run ${runId}`);
    } finally {
      cancel?.();
      signal?.removeEventListener("abort", given);
    }
  }

  /** @returns "cancelled" if the run will not start; "stopping" if it has started and was asked to stop @throws RUN_UNKNOWN, RUN_STATE */
  async cancel(runId: number, { reason = "cancelled", ...by }: Why = {}): Promise<"cancelled" | "stopping"> {
    const { store } = await this.#options.open();
    const { author, nowMs } = this.#options.change(by);
    if ((await store.runs.cancel(runId, reason, nowMs, author)) === "cancelled") return "cancelled";
    const [started] = await awaitRecall(store.runs, this.#options.clock, [runId]);
    return started === undefined ? "cancelled" : "stopping";
  }

  /**
   * Decides whether an undecided run is retried or fails. A run is undecided if its worker was lost and its task has `onWorkerLost: "ask"`.
   * @throws RUN_UNKNOWN, RUN_STATE
   */
  async decide(runId: number, how: "retry" | "fail", why: Why = {}): Promise<void> {
    const { store } = await this.#options.open();
    const { author, reason, nowMs } = this.#options.change(why);
    await store.flow.decide(runId, how, reason, nowMs, author);
  }

  /** Creates a new run with the task and payload of a run that has ended. @throws RUN_UNKNOWN, RUN_STATE, TASK_UNKNOWN */
  async retry(runId: number, why: Why = {}): Promise<RunHandle> {
    const { store } = await this.#options.open();
    return this.handleOf(await store.operations.rerun(runId, this.#options.change(why)));
  }

  /**
   * Yields the run's state changes, its progress, its log from the first line on, and finally its end. Sends at least two queries to the
   * store each half second; `result`, which waits only for the end, sends far fewer.
   * @param signal aborting it ends the events
   * @throws RUN_UNKNOWN, also at the end of a successful run whose task stores no successes
   */
  async *events(runId: number, { signal }: { signal?: AbortSignal } = {}): AsyncGenerator<RunEvent> {
    const { store } = await this.#options.open();
    const stopping = AbortSignal.any([this.#closing.signal, ...(signal ? [signal] : [])]);
    const from = { seen: null, reading: null, place: null };
    const { clock, codecs } = this.#options;
    const steps = followed({ store, clock }, await store.runs.find(runId), from, stopping);
    yield* eventsOf(codecs.followed(steps));
  }

  /** Returns the run's log lines up to now, oldest first; at most 1,000 by default. */
  async logs(runId: number, { limit = logsDefault }: { limit?: number } = {}): Promise<LogLine[]> {
    const { store } = await this.#options.open();
    return store.runs.logs(runId, limit);
  }

  /** @internal Creates the handle of a run that was just enqueued. */
  readonly handleOf = (enqueued: Enqueued): RunHandle => new EnqueuedRun(enqueued, this);
}
