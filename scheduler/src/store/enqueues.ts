import { jsonText } from "../base/json.ts";
import { checkEnqueueOptions, type EnqueueOptions, readOptions } from "../run/enqueue-options.ts";
import { isAlone } from "../run/keys/key-over-time.ts";
import type { EnqueueWrite } from "../run/run-record.ts";
import type { RunStore } from "../run/run-store.ts";
import type { Enqueuer } from "./enqueuer.ts";
import type { EnqueueTracing } from "./trace-context.ts";

export interface EnqueuesOptions {
  runs: Pick<RunStore, "enqueueReplacing">;
  enqueuer: Pick<Enqueuer, "add">;
  tracing: EnqueueTracing | undefined;
  /** Returns the id of the task with this name, even if the task was removed. @throws TASK_UNKNOWN */
  taskIdOf: (name: string) => Promise<number>;
}

interface Given {
  task: string;
  payload?: unknown;
  key?: string | null | undefined;
  limitKey?: string | null | undefined;
  priority?: number | null | undefined;
  runId?: number | undefined;
  source: "enqueue" | "manual";
}

/** Enqueues the runs of the API's callers and of incoming webhooks. */
export class Enqueues {
  readonly #options: EnqueuesOptions;

  constructor(options: EnqueuesOptions) {
    this.#options = options;
  }

  /** @throws TASK_UNKNOWN, PAYLOAD_…, OPTION_INVALID, DURATION_INVALID */
  async writeOf(
    { task, payload, key = null, limitKey = null, priority = null, source, runId }: Given,
    options: EnqueueOptions,
    nowMs: number,
  ): Promise<EnqueueWrite> {
    checkEnqueueOptions(options);
    const read = readOptions(options, nowMs);
    return {
      taskId: await this.#options.taskIdOf(task),
      payload: jsonText(payload, `the payload of task ${task}`),
      ...read,
      key,
      limitKey,
      priority,
      source,
      runId,
    };
  }

  /** Enqueues one run within the trace of the request. */
  one(task: string, write: EnqueueWrite, traceparent: string | undefined, nowMs: number) {
    const { runs, enqueuer } = this.#options;
    return this.traced(task, traceparent, (context) =>
      isAlone(write) ? runs.enqueueReplacing({ ...write, context }, nowMs) : enqueuer.add({ ...write, context }),
    );
  }

  /**
   * Enqueues within the trace of the request, which the runs then continue, even if this server itself does not trace.
   * @param task null if the runs are of several tasks
   */
  traced<Made>(
    task: string | null,
    traceparent: string | undefined,
    send: (context: string | undefined) => Promise<Made>,
  ): Promise<Made> {
    const { tracing } = this.#options;
    return tracing ? tracing.enqueue(task, send, traceparent) : send(traceparent);
  }
}

export const payloadBytes = (payload: string | null | undefined): number => Buffer.byteLength(payload ?? "");
