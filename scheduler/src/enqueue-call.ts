import type { DefinedTasks } from "./defined-tasks.ts";
import { checkEnqueueOptions, dueOfEnqueue, type EnqueueOptions } from "./enqueue-options.ts";
import type { Enqueuer } from "./enqueuer.ts";
import { jsonText } from "./json.ts";
import { payloadName, payloadText } from "./payload.ts";
import type { Enqueued, EnqueueWrite, RunStore } from "./store.ts";
import type { EnqueueTracing } from "./trace-context.ts";

/** What there is for it once the store is open. */
export interface EnqueuePlace {
  runs: Pick<RunStore, "enqueueIn">;
  enqueuer: Enqueuer;
  tracing: EnqueueTracing | undefined;
  /** The number of a task that this process has not asked for yet. */
  taskId(task: string): Promise<number>;
}

/**
 * From what a program asks for to what the store is given. Where the store is open, the task's number known and nobody has to be
 * waited for on the way, all of it happens in the call itself: a promise for each step, eight of them, was half of what Node
 * did for an enqueue, with what its collector did for them.
 */
export class EnqueueCall {
  readonly #defined: DefinedTasks;
  readonly #now: () => number;
  readonly #open: () => Promise<EnqueuePlace>;
  #place: EnqueuePlace | undefined;
  #closed = false;

  constructor(options: { defined: DefinedTasks; now: () => number; open: () => Promise<EnqueuePlace> }) {
    this.#defined = options.defined;
    this.#now = options.now;
    this.#open = options.open;
  }

  /** From now on each call is told what became of the store. */
  close(): void {
    this.#closed = true;
    this.#place = undefined;
  }

  enqueue(task: string, payload: unknown, options: EnqueueOptions, source: "enqueue" | "manual"): Promise<Enqueued> {
    try {
      const place = this.#place;
      const taskId = this.#defined.known(task);
      if (!place || taskId === undefined || place.tracing || options.tx || this.#defined.get(task)?.schema)
        return this.#wait(task, payload, options, source);
      checkEnqueueOptions(options);
      const text = jsonText(payload, payloadName(task));
      return place.enqueuer.add(writeOf(taskId, text, options, source, this.#now()));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async #wait(task: string, payload: unknown, options: EnqueueOptions, source: "enqueue" | "manual") {
    checkEnqueueOptions(options);
    const text = await payloadText(this.#defined.get(task)?.schema, payload, task);
    const place = await this.#open();
    if (!this.#closed) this.#place = place;
    const taskId = this.#defined.known(task) ?? (await place.taskId(task));
    const nowMs = this.#now();
    const write = writeOf(taskId, text, options, source, nowMs);
    const { tx } = options;
    const send = (write: EnqueueWrite) => (tx ? place.runs.enqueueIn(tx, write, nowMs) : place.enqueuer.add(write));
    return place.tracing ? place.tracing.enqueue(task, (context) => send({ ...write, context })) : send(write);
  }
}

function writeOf(
  taskId: number,
  payload: string | null,
  options: EnqueueOptions,
  source: "enqueue" | "manual",
  nowMs: number,
): EnqueueWrite {
  const { key = null, limitKey = null, priority = null } = options;
  return { taskId, payload, dueMs: dueOfEnqueue(options, nowMs), key, limitKey, priority, source };
}
