import type { Clock } from "../../base/clock.ts";
import { shownValue } from "../../base/json.ts";
import type { Handler, Run } from "../../run/handler.ts";
import type { BatchHandler, BatchOptions, BatchRun } from "../../run/handling/batch.ts";
import { count, duration, inner, isObject, stranger, wrong } from "../../task/kinds/kinds.ts";

const sizeMost = 10_000;
const usualWaitMs = 100;
const waitMostMs = 60_000;
const names = ["size", "wait"];
const size = count(1, sizeMost);
const wait = duration({ leastMs: 0 });

interface BatchPolicy {
  size: number;
  waitMs: number;
}

/** The parts of a worker that batches use. */
export interface BatchHost {
  clock: Clock;
  /** The maximum number of runs that this worker executes at once; a batch never waits for more runs than this. */
  concurrency: number;
  /**
   * For tests with a virtual clock. Called with 1 when a run begins to wait in a batch, and with a negative number when that many runs stop
   * waiting.
   */
  gathers?: ((more: number) => void) | undefined;
}

/** Checks the options of a batch handler and fills in defaults. @throws TASK_INVALID, DURATION_INVALID */
function policyOf(task: string, given: BatchOptions): BatchPolicy {
  const place = { task, path: "batch" };
  const hint = 'Give such as { size: 100, wait: "200ms" }.';
  if (!isObject(given)) throw wrong(place, ` cannot be ${shownValue(given)}`, hint);
  const unknown = Object.keys(given).find((name) => !names.includes(name));
  if (unknown !== undefined) throw stranger(place, unknown, names);
  const waitMs = given.wait === undefined ? usualWaitMs : wait.read(given.wait, inner(place, "wait"));
  if (waitMs > waitMostMs) throw wrong(inner(place, "wait"), " is longer than a minute", "Give at most 1m.");
  return { size: size.read(given.size, inner(place, "size")), waitMs };
}

/**
 * Turns a handler of several runs into a handler of single runs. From the time at which a run joins a batch, the worker sees that run as
 * started, with its own slot, timeout, signal and verdict. So claims and limits work as for single runs.
 * @throws TASK_INVALID, DURATION_INVALID
 */
export function batched(
  task: string,
  handler: BatchHandler<never> | URL | string | undefined,
  given: BatchOptions,
  { clock, concurrency, gathers = () => undefined }: BatchHost,
): Handler {
  const { size, waitMs } = policyOf(task, given);
  if (typeof handler !== "function")
    throw wrong(
      { task, path: "batch" },
      " needs a handler that is a function",
      "An isolated handler, a command and an HTTP request take one run each.",
    );
  const most = Math.min(size, concurrency);
  let open: Member[] | undefined;
  let cancel: () => void = () => undefined;
  const begin = () => {
    cancel();
    const members = open ?? [];
    open = undefined;
    gathers(-members.length);
    for (const member of members) member.begin();
    if (members.length > 0) void work(handler as BatchHandler, members);
  };
  const leave = (member: Member) => {
    open?.splice(open.indexOf(member), 1);
    gathers(-1);
    if (open?.length === 0) begin();
  };
  return (run, payload) => {
    const member = new Member(run, payload, leave);
    if (run.signal.aborted) return Promise.reject(run.signal.reason);
    if (open === undefined) {
      open = [];
      cancel = clock.after(waitMs, begin);
    }
    open.push(member);
    gathers(1);
    member.waits();
    if (open.length >= most) begin();
    return member.ended;
  };
}

/** One run of a batch, from the time at which the run joins the batch until the run has ended. */
class Member {
  readonly ended: Promise<unknown>;
  readonly run: BatchRun;
  readonly #left: () => void;
  over = false;
  #resolve!: (value: unknown) => void;
  #reject!: (error: unknown) => void;

  /** @param leave called when the run is aborted before its batch has begun */
  constructor(run: Run, payload: unknown, leave: (member: Member) => void) {
    this.ended = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    const succeed = (value?: unknown) => this.succeed(value);
    const fail = (error: unknown) => this.fail(error);
    // `run` belongs to this member alone, so the object can be extended in place.
    this.run = Object.assign(run, { payload, succeed, fail });
    this.#left = () => {
      leave(this);
      this.fail(run.signal.reason);
    };
  }

  waits(): void {
    this.run.signal.addEventListener("abort", this.#left, { once: true });
  }

  begin(): void {
    this.run.signal.removeEventListener("abort", this.#left);
  }

  succeed(value: unknown): void {
    this.over = true;
    this.#resolve(value);
  }

  fail(error: unknown): void {
    this.over = true;
    this.#reject(error);
  }
}

async function work(handler: BatchHandler, members: readonly Member[]): Promise<void> {
  try {
    const value = await handler(members.map(({ run }) => run));
    for (const member of members) if (!member.over) member.succeed(value);
  } catch (error) {
    const left = members.filter(({ over }) => !over);
    for (const member of left) member.fail(error);
    if (left.length === 0) members[0]?.run.log.error("the batch threw after its last run had ended", { error });
  }
}
