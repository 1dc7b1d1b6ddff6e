import type { SqlClient } from "../../base/change.ts";
import type { Clock } from "../../base/clock.ts";
import { CarillonError, messageOf } from "../../base/errors.ts";
import { jsonText } from "../../base/json.ts";
import { notStarted } from "../../cluster/stand-in.ts";
import { type ClaimEvent, type ClaimState, claimTable } from "../../run/claim.ts";
import type { ClaimedRun } from "../../run/claim-store.ts";
import { definitionFor } from "../../run/enqueue-options.ts";
import type { Run, RunLog } from "../../run/handler.ts";
import { logFields } from "../../run/log-fields.ts";
import type { LogLine } from "../../run/run-record.ts";
import { clientOf, type Transaction } from "../../run/transaction.ts";
import type { KnownTask } from "../../store/definitions.ts";
import type { TaskDefinition } from "../../task/options.ts";
import { handlerTask, scheduleCalled } from "../../task/schedule-of.ts";
import { type FlowHost, HandedRun } from "./handed-run.ts";

/** One claim that this process holds: the state of the claim, and the object behind the `Run` that the handler receives. */
export class HeldRun {
  readonly claim: ClaimedRun;
  /**
   * The `Run` that the run's handler receives. It is created with the claim, mostly ahead of the due time; if ten thousand runs are due at
   * once, creating these objects at the start would take a millisecond.
   */
  readonly handed: Run;
  readonly known: KnownTask;
  readonly #worker: RunHost;
  state: ClaimState = "waiting";
  startedMs: number | null = null;
  /**
   * When the run started, by this process's monotonic clock; NaN until then. This field and `sinceMs` begin as NaN, because with a
   * small integer as first value, V8 would convert each existing object to another layout as soon as one object gets a fraction,
   * which happens when the runs are due.
   */
  startedMono = Number.NaN;
  /** Index of the mark in shared memory by which the stand-in thread knows that the run has started. */
  mark: number = notStarted;
  /** When the run began to wait for a slot in this worker, by the store's clock; NaN if the run does not wait. */
  sinceMs = Number.NaN;
  /** True once the store has recorded that the run has started. */
  reported = false;
  progressText: string | null = null;
  /** True if the handler has ended the run in its own transaction (`run.complete`). */
  completed = false;
  /**
   * True from the moment when the handler begins to complete the run in its own transaction. Until that transaction ends, every other
   * statement that changes the run's row waits for it.
   */
  completing = false;
  cancelTimeout: (() => void) | undefined;
  #controller: AbortController | undefined;
  #abortReason: CarillonError | undefined;
  #abortedMono = Number.NaN;
  #log: RunLog | undefined;

  constructor(claim: ClaimedRun, known: KnownTask, worker: RunHost) {
    this.claim = claim;
    this.known = known;
    this.#worker = worker;
    this.handed = new HandedRun(this, worker);
  }

  get id(): number {
    return this.claim.runId;
  }

  get task(): string {
    return handlerTask(this.known.definition);
  }

  get schedule(): string | null {
    return scheduleCalled(this.known.definition);
  }

  /** The retry policy and timeout of the run: those of its task, with the run's own overrides. */
  get policies(): Pick<TaskDefinition, "retry" | "timeoutMs"> {
    return definitionFor(this.known.definition, this.claim.overrides);
  }

  /** True if the run's expiry time has passed before its first attempt started, so the run must not start. See `toStart` of the store. */
  get expired(): boolean {
    const { expiresMs, attempt } = this.claim;
    return expiresMs != null && attempt === 1 && this.#worker.now() >= expiresMs;
  }

  get slot(): Date | null {
    return this.claim.slotMs === null ? null : new Date(this.claim.slotMs);
  }

  get due(): Date {
    return new Date(this.claim.dueMs);
  }

  get attempt(): number {
    return this.claim.attempt;
  }

  get key(): string | null {
    return this.claim.key;
  }

  get labels(): Run["labels"] {
    return this.claim.labels ?? {};
  }

  get shard(): Run["shard"] {
    const { shard } = this.claim;
    return shard ? { index: shard[0], total: shard[1] } : null;
  }

  get fence(): number {
    return this.claim.fence;
  }

  /** The signal that aborts the handler. Its controller is created on first access, because most handlers never read the signal. */
  get signal(): AbortSignal {
    this.#worker.doubt(this);
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#abortReason) this.#controller.abort(this.#abortReason);
    }
    return this.#controller.signal;
  }

  get abortReason(): CarillonError | undefined {
    return this.#abortReason;
  }

  get log(): RunLog {
    this.#log ??= runLog(this, this.#worker);
    return this.#log;
  }

  progress(value: unknown): void {
    const text = jsonText(value, `run ${this.id}: progress`);
    this.progressText = this.#worker.secrets?.redactor.json(text) ?? text;
  }

  async complete(transaction: Transaction, result?: unknown): Promise<void> {
    const client = clientOf("run.complete's client", transaction);
    const text = jsonText(result, `run ${this.id}: result`);
    this.completing = true;
    let stands = false;
    try {
      stands = await this.#worker.completeIn(client, this, text);
    } finally {
      this.completing = stands;
    }
    if (!stands) {
      throw new CarillonError("FENCE_STALE", `run ${this.id} is no longer this worker's`, {
        hint: "Roll your transaction back.",
      });
    }
    this.completed = true;
  }

  /** Applies an event to the claim's state machine. @returns the action to take */
  on(event: ClaimEvent) {
    // The step is read by index, because in code that is not compiled yet, destructuring an array uses its iterator, which is slow
    // for ten thousand events in a row.
    const step = claimTable[this.state][event];
    this.state = step[0];
    return step[1];
  }

  /** How long ago the run was aborted, in ms. */
  get toldForMs(): number {
    return this.#worker.clock.monotonic() - this.#abortedMono;
  }

  abort(reason: CarillonError): void {
    if (!this.#abortReason) this.#abortedMono = this.#worker.clock.monotonic();
    this.#abortReason ??= reason;
    this.#controller?.abort(this.#abortReason);
  }
}

export interface RunHost extends FlowHost {
  readonly clock: Clock;
  writeLog(line: LogLine): void;
  /**
   * If the session may be over, so that another worker may hold the run's claim: aborts the run if it has started, otherwise drops
   * it. A run that was reported as started is aborted only after its grace period.
   */
  doubt(run: HeldRun): void;
  completeIn(client: SqlClient, run: HeldRun, result: string | null): Promise<boolean>;
}

function runLog(run: HeldRun, host: RunHost): RunLog {
  const write = (level: LogLine["level"]) => (message: string, fields?: Record<string, unknown>) => {
    host.writeLog({
      runId: run.id,
      fence: run.fence,
      attempt: run.attempt,
      atMs: host.now(),
      level,
      message: messageOf(message),
      fields: logFields(fields),
    });
  };
  return { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
}
