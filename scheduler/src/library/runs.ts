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
  /** The task's name; also of a task that was removed. */
  task?: string;
  /** Default: all. */
  states?: RunRecord["state"][];
  /** Only live runs due, and ended runs that ended, at or after this time. */
  since?: Date;
  /** Only live runs due before this time, and ended runs that ended before it. */
  until?: Date;
  /** Only runs of the tasks of this group. */
  group?: string;
  /** Only runs of the tasks in this namespace. */
  namespace?: string;
  /** Only runs with this key; requires `task`, because a key is unique only within its task. */
  key?: string;
  /** Only runs of this origin: a slot, an enqueue, a start by hand, or another run. */
  source?: RunSource;
  /** Only runs with all of these labels. */
  labels?: Record<string, string>;
}

export interface RunsPage {
  /** Live runs first, by due time; then ended runs, the latest first. */
  items: RunSummary[];
  /** Pass it as `cursor` to get the next page; null: this is the last one. */
  next: string | null;
}

export interface RunsCount {
  runs: number;
  more: boolean;
}

/** A run without payload, progress and result; its error has only code and message. */
export type RunSummary = Omit<RunRecord, "payload" | "progress" | "result">;

export interface RunsOptions extends Acting {
  codecs: Codecs;
  /** Returns the store's time in epoch milliseconds. */
  now: () => number;
}

const pageDefault = 50;
const pageMost = 1_000;
const countMost = 10_000;

/** Filters out duplicates: lists return live runs before ended ones, so a run that ends between the two reads is in both. */
function onceEach(): (run: Pick<RunRecord, "runId" | "state">) => boolean {
  const live = new Set<number>();
  return ({ runId, state }) => {
    if (live.has(runId)) return false;
    if ((liveStates as readonly string[]).includes(state)) live.add(runId);
    return true;
  };
}
/** The most statements for one page, if the runs have to be tested one by one. */
const looksMost = 10;
const logsDefault = 1_000;
/** How long after its end a success without a stored row is still found, by its trace. */
const tracedMs = 600_000;

/** @throws OPTION_INVALID */
export function timeOf(end: "since" | "until", date: Date): number {
  const ms = date?.getTime?.();
  if (ms !== undefined && !Number.isNaN(ms)) return ms;
  throw new CarillonError("OPTION_INVALID", `${end} is no time`, { path: end, hint: "Give a Date." });
}

const cursorAt = ({ phase, atMs, runId }: RunPlace): string => [phase, atMs, runId].join(" ");

/** @throws OPTION_INVALID */
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

/** @throws OPTION_INVALID */
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

/** Runs of all tasks, by their numbers, whichever process executes them. */
export class Runs implements HandledRuns {
  readonly #options: RunsOptions;
  readonly #ends: AwaitedEnds;
  readonly #closing = new AbortController();

  constructor(options: RunsOptions) {
    this.#options = options;
    this.#ends = new AwaitedEnds({ ...options, open: async () => (await options.open()).store });
  }

  /** @internal Rejects all waits with this reason, and ends all events. */
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
   * A page of runs: `limit` of them at most, 50 by default, 1,000 at most. A run that ends between two pages may be on both. By source, by
   * key, or by a group or namespace of many tasks, a page may be short, or empty, with a `next`: a call reads a limited number of runs.
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

  /** All matching runs, each once, read page by page. */
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
   * The number of matching runs, counted up to `most`, 10,000 by default. The runs are read page by page, so a count costs as much as a
   * list.
   * @returns `more`: true if more than `most` runs match
   */
  async count(filter: RunsFilter = {}, { most = countMost }: { most?: number } = {}): Promise<RunsCount> {
    let runs = 0;
    for await (const _ of this.each(filter)) {
      if (runs === most) return { runs, more: true };
      runs++;
    }
    return { runs, more: false };
  }

  /** Waits for the run's end. @returns the handler's result @throws as `RunHandle.result` */
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

  /** @returns "cancelled" when the run will not start; "stopping" when it runs and was asked to stop @throws RUN_UNKNOWN, RUN_STATE */
  async cancel(runId: number, { reason = "cancelled", ...by }: Why = {}): Promise<"cancelled" | "stopping"> {
    const { store } = await this.#options.open();
    const { author, nowMs } = this.#options.change(by);
    if ((await store.runs.cancel(runId, reason, nowMs, author)) === "cancelled") return "cancelled";
    const [started] = await awaitRecall(store.runs, this.#options.clock, [runId]);
    return started === undefined ? "cancelled" : "stopping";
  }

  /**
   * Decides the outcome of an undecided run: its worker was lost, and its task has `onWorkerLost: "ask"`.
   * @throws RUN_UNKNOWN, RUN_STATE
   */
  async decide(runId: number, how: "retry" | "fail", why: Why = {}): Promise<void> {
    const { store } = await this.#options.open();
    const { author, reason, nowMs } = this.#options.change(why);
    await store.flow.decide(runId, how, reason, nowMs, author);
  }

  /** Runs an ended run once more, as a new run. @throws RUN_UNKNOWN, RUN_STATE, TASK_UNKNOWN */
  async retry(runId: number, why: Why = {}): Promise<RunHandle> {
    const { store } = await this.#options.open();
    return this.handleOf(await store.operations.rerun(runId, this.#options.change(why)));
  }

  /**
   * Follows the run until its end: its states, its progress, its log from the first line on, its end. Costs two statements each half
   * second; to wait only for the end, `result` costs none.
   * @param signal once aborted, the events end @throws RUN_UNKNOWN, also at the end of a success of which no row is kept
   */
  async *events(runId: number, { signal }: { signal?: AbortSignal } = {}): AsyncGenerator<RunEvent> {
    const { store } = await this.#options.open();
    const stopping = AbortSignal.any([this.#closing.signal, ...(signal ? [signal] : [])]);
    const from = { seen: null, reading: null, place: null };
    const { clock, codecs } = this.#options;
    const steps = followed({ store, clock }, await store.runs.find(runId), from, stopping);
    yield* eventsOf(codecs.followed(steps));
  }

  /** The run's log so far, the oldest line first; 1,000 lines by default. */
  async logs(runId: number, { limit = logsDefault }: { limit?: number } = {}): Promise<LogLine[]> {
    const { store } = await this.#options.open();
    return store.runs.logs(runId, limit);
  }

  /** @internal The handle of a run that was just enqueued. */
  readonly handleOf = (enqueued: Enqueued): RunHandle => new EnqueuedRun(enqueued, this);
}
