import type { Clock } from "../base/clock.ts";
import { parseDuration } from "../base/duration.ts";
import { within } from "../base/errors.ts";
import { jsonText } from "../base/json.ts";
import { checkEnqueueOptions, type EnqueueOptions, readOptions, replacing } from "../run/enqueue-options.ts";
import { isAlone, keyOverTime } from "../run/keys/key-over-time.ts";
import type { Enqueued, EnqueueWrite } from "../run/run-record.ts";
import type { RunStore } from "../run/run-store.ts";
import { clientOf, type Transaction } from "../run/transaction.ts";
import { type Enqueuer, enqueueTimedOut, enqueueTimeoutMs, type Patience } from "../store/enqueuer.ts";
import type { EnqueueTracing } from "../store/trace-context.ts";
import type { DefinedTasks } from "./defined-tasks.ts";
import { payloadName, payloadText } from "./payload.ts";
import type { Codecs } from "./payloads/codecs.ts";
import type { RunHandle } from "./run-handle.ts";

/** The maximum number of enqueues of one call that wait for the store at a time. It is enough for several full statements. */
const askedMost = 8_000;

/** The parts needed for enqueueing, which exist once the store is open. */
export interface EnqueuePlace {
  runs: Pick<RunStore, "enqueueIn" | "enqueueReplacing" | "requireTransaction">;
  enqueuer: Enqueuer<RunHandle>;
  tracing: EnqueueTracing | undefined;
  /** Returns a task's id from the store, for a task whose id is not cached. */
  taskId(task: string): Promise<number>;
}

export interface EnqueueCallOptions {
  defined: DefinedTasks;
  codecs: Codecs;
  now: () => number;
  clock: Clock;
  open: () => Promise<EnqueuePlace>;
  /** Returns the handle of a run that was enqueued in the caller's own transaction. */
  handleOf: (enqueued: Enqueued) => RunHandle;
}

/**
 * Converts the arguments of an enqueue to a write for the store. The conversion is synchronous if the store is open, the task's
 * id is cached and no step is asynchronous, because a promise for each step would cost more CPU time than the steps themselves.
 */
export class EnqueueCall {
  readonly #defined: DefinedTasks;
  readonly #codecs: Codecs;
  readonly #now: () => number;
  readonly #open: () => Promise<EnqueuePlace>;
  readonly #handleOf: (enqueued: Enqueued) => RunHandle;
  readonly #clock: Clock;
  #place: EnqueuePlace | undefined;
  #closed = false;

  constructor(options: EnqueueCallOptions) {
    this.#clock = options.clock;
    this.#handleOf = options.handleOf;
    this.#defined = options.defined;
    this.#codecs = options.codecs;
    this.#now = options.now;
    this.#open = options.open;
  }

  /** Drops the cached parts, so that later calls use `open` and get its error, or the error of the closed store. */
  close(): void {
    this.#closed = true;
    this.#place = undefined;
  }

  enqueue(task: string, payload: unknown, options: EnqueueOptions, source: "enqueue" | "manual"): Promise<RunHandle> {
    try {
      const place = this.#place;
      const taskId = this.#defined.known(task);
      if (
        !place ||
        taskId === undefined ||
        place.tracing ||
        this.#codecs.encodes ||
        options.tx ||
        options.ifKeyTaken ||
        options.uniqueFor !== undefined ||
        this.#defined.schemaOf(task)
      )
        return this.#inTime(options, () => this.#wait(task, payload, options, source));
      checkEnqueueOptions(options);
      const text = jsonText(payload, payloadName(task));
      return place.enqueuer.add(writeOf(taskId, text, options, source, this.#now()), patienceOf(options));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Rejects after the timeout, which includes the time to open the store and to look up the task. A run may still be created
   * afterwards, which the error's message states.
   */
  async #inTime<T>(options: EnqueueOptions, enqueue: () => Promise<T>): Promise<T> {
    checkEnqueueOptions(options);
    const { timeoutMs = enqueueTimeoutMs, signal } = patienceOf(options) ?? {};
    signal?.throwIfAborted();
    let end: () => void = () => undefined;
    const given = new Promise<never>((_, reject) => {
      const cancel = this.#clock.after(timeoutMs, () => reject(enqueueTimedOut(true)));
      const aborted = () => reject(signal?.reason);
      signal?.addEventListener("abort", aborted, { once: true });
      end = () => {
        cancel();
        signal?.removeEventListener("abort", aborted);
      };
    });
    try {
      return await Promise.race([enqueue(), given]);
    } finally {
      end();
    }
  }

  /**
   * Enqueues a run for each payload. All payloads of an array are checked before the first run is created. Payloads of a stream are read as
   * fast as the store accepts them.
   * @param given options for all payloads, or a function of each payload and its index
   */
  async many(
    task: string,
    payloads: Iterable<unknown> | AsyncIterable<unknown>,
    given: EnqueueOptions | ((payload: never, index: number) => EnqueueOptions),
  ): Promise<RunHandle[]> {
    const schema = this.#defined.schemaOf(task);
    const asked: Promise<RunHandle>[] = [];
    let failure: { error: unknown } | undefined;
    let index = 0;
    let checked: EnqueueOptions | undefined;
    const prepare = async (payload: unknown): Promise<Prepared> => {
      const at = index++;
      const options = typeof given === "function" ? given(payload as never, at) : given;
      try {
        if (options !== checked) {
          checkEnqueueOptions(options);
          // Only validates the options. They are read again when the run is sent, because relative times count from that moment.
          readOptions(options, this.#now());
          checked = options;
        }
        return { text: await payloadText(schema, payload, task), options };
      } catch (error) {
        return within(`[${at}]`, () => {
          throw error;
        });
      }
    };
    const place = await this.#inTime(typeof given === "function" ? {} : given, () => this.#opened());
    const ask = async ({ text, options }: Prepared) => {
      if (failure) throw failure.error;
      const one = this.#send(place, task, text, options, "enqueue");
      asked.push(one);
      one.catch((error: unknown) => {
        failure ??= { error };
      });
      // With `tx`, each enqueue waits for the one before it, because a transaction's client can execute only one statement at a time.
      // Without `tx`, at most `askedMost` enqueues are pending.
      await asked[asked.length - (options.tx ? 1 : askedMost)];
    };
    if (Array.isArray(payloads)) {
      const prepared: Prepared[] = [];
      for (const payload of payloads) prepared.push(await prepare(payload));
      for (const one of prepared) await ask(one);
    } else for await (const payload of payloads) await ask(await prepare(payload));
    return Promise.all(asked);
  }

  async #wait(task: string, payload: unknown, options: EnqueueOptions, source: "enqueue" | "manual") {
    const text = await payloadText(this.#defined.schemaOf(task), payload, task);
    return this.#send(await this.#opened(), task, text, options, source);
  }

  async #opened(): Promise<EnqueuePlace> {
    const place = await this.#open();
    if (!this.#closed) this.#place = place;
    return place;
  }

  async #send(
    place: EnqueuePlace,
    task: string,
    text: string | null,
    options: EnqueueOptions,
    source: "enqueue" | "manual",
  ): Promise<RunHandle> {
    const taskId = this.#defined.known(task) ?? (await place.taskId(task));
    const nowMs = this.#now();
    const kept = await this.#codecs.encoded(text, task, payloadName(task));
    const write = writeOf(taskId, kept, options, source, nowMs);
    const { tx } = options;
    const send = (write: EnqueueWrite) =>
      tx
        ? this.#sendIn(tx, place, write, nowMs)
        : isAlone(write)
          ? this.#replace(place, write, nowMs, options)
          : place.enqueuer.add(write, patienceOf(options));
    return place.tracing ? place.tracing.enqueue(task, (context) => send({ ...write, context })) : send(write);
  }

  /** Uses one transaction per run. Enqueues that replace a run are rare, and their transaction locks the planning of the task. */
  async #replace(place: EnqueuePlace, write: EnqueueWrite, nowMs: number, { signal }: EnqueueOptions) {
    return this.#handleOf(await place.runs.enqueueReplacing(write, nowMs, signal));
  }

  async #sendIn(given: Transaction, { runs }: EnqueuePlace, write: EnqueueWrite, nowMs: number): Promise<RunHandle> {
    const tx = clientOf("tx", given);
    await runs.requireTransaction(tx);
    return this.#handleOf(await runs.enqueueIn(tx, write, nowMs));
  }
}

/** A validated payload as JSON text, with the options of its run. */
interface Prepared {
  text: string | null;
  options: EnqueueOptions;
}

/** @returns undefined if the caller set neither a timeout nor a signal */
function patienceOf({ timeout, signal }: EnqueueOptions): Patience | undefined {
  if (timeout === undefined && signal === undefined) return undefined;
  return { timeoutMs: timeout === undefined ? undefined : parseDuration(timeout, "timeout", 1), signal };
}

function writeOf(
  taskId: number,
  payload: string | null,
  options: EnqueueOptions,
  source: "enqueue" | "manual",
  nowMs: number,
): EnqueueWrite {
  const { key = null, limitKey = null, priority = null, ifKeyTaken } = options;
  const read = readOptions(options, nowMs);
  return {
    taskId,
    payload,
    ...read,
    key,
    limitKey,
    priority,
    source,
    ...replacing(ifKeyTaken),
    ...keyOverTime(options),
  };
}
