import type { SqlClient } from "../../base/change.ts";
import { messageOf } from "../../base/errors.ts";
import { type Json, jsonText } from "../../base/json.ts";
import { Continuation, type Onward } from "../../run/flow.ts";
import type { Run, RunLog } from "../../run/handler.ts";
import { retryIn, snooze } from "../../run/handling/postponed.ts";
import { logFields } from "../../run/log-fields.ts";
import { clientOf } from "../../run/transaction.ts";
import type { Asked, FromHost, Outcome, RunFields, ToHost } from "./messages.ts";
import { received, sent } from "./thrown.ts";

interface Question {
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
  /** For `run.complete`: the database client of the handler, with which this host executes the worker's statements. */
  client: SqlClient | undefined;
}

/**
 * The `Run` object that a handler gets in a host. Invalid calls are refused here where possible, with the same errors as for a handler in
 * the worker's own thread; all other calls are sent to the worker, in order.
 */
export class HostedRun {
  readonly run: Run;
  readonly turn: number;
  readonly #post: (message: FromHost) => void;
  readonly #questions = new Map<number, Question>();
  #asked = 0;
  #state: Json;
  #controller: AbortController | undefined;
  #reason: { thrown: unknown } | undefined;

  constructor(turn: number, fields: RunFields, post: (message: FromHost) => void) {
    this.turn = turn;
    this.#post = post;
    this.#state = fields.state;
    this.run = this.#made(fields);
  }

  /** The reason with which the run's signal was aborted. */
  get reason(): unknown {
    return this.#reason?.thrown;
  }

  abort(message: ToHost & { kind: "abort" }): void {
    this.#reason ??= { thrown: received(message.reason) };
    this.#controller?.abort(this.#reason.thrown);
  }

  answered({ question, outcome }: ToHost & { kind: "answer" }): void {
    const open = this.#questions.get(question);
    this.#questions.delete(question);
    if ("thrown" in outcome) open?.reject(received(outcome.thrown, this.reason));
    else open?.resolve(outcome.value);
  }

  async query({ query, question, text, values }: ToHost & { kind: "query" }): Promise<void> {
    let outcome: Outcome;
    try {
      const { client } = this.#questions.get(question) as Question;
      const { rows } = await (client as SqlClient).query(text, values);
      outcome = { value: rows };
    } catch (error) {
      outcome = { thrown: sent(error, this.reason) };
    }
    this.#post({ kind: "queried", turn: this.turn, query, outcome });
  }

  #made({ id, task, schedule, attempt, key, labels, shard, fence, slotMs, dueMs }: RunFields): Run {
    const { turn } = this;
    // Needed because `this` is another object in the getters below.
    const hosted = this;
    const checked = (value: unknown, what: string): unknown => {
      const text = jsonText(value, what);
      return text === null ? undefined : JSON.parse(text);
    };
    return {
      id,
      task,
      schedule,
      attempt,
      key,
      labels,
      shard,
      fence,
      slot: slotMs === null ? null : new Date(slotMs),
      due: new Date(dueMs),
      log: this.#log(),
      get signal() {
        return hosted.#signal();
      },
      get state() {
        return hosted.#state;
      },
      progress: (value) => this.#post({ kind: "progress", turn, value: checked(value, `run ${id}: progress`) }),
      secret: async (...given) => (await this.#ask("secret", given)) as string,
      saveState: async (value) => {
        const kept = checked(value ?? undefined, `run ${id}: state`);
        await this.#ask("saveState", [kept]);
        this.#state = (kept ?? null) as Json;
      },
      spawn: async (name, payload, ...options) => {
        const kept = checked(payload, `run ${id}: the payload of its child`);
        return (await this.#ask("spawn", [name, kept, ...options])) as { runId: number; created: boolean };
      },
      fanOut: async (children, { join, payload }) => {
        const kept = children.map((child) => ({
          ...child,
          payload: checked(child.payload, `run ${id}: the payload of its child`),
        }));
        const joined = { join, payload: checked(payload, `run ${id}: the payload of ${join}`) };
        return new Continuation((await this.#ask("fanOut", [kept, joined])) as Onward);
      },
      continueAs: (payload, { state } = {}) =>
        new Continuation({
          kind: "continue",
          payload: jsonText(payload, `run ${id}: the payload of the next run`),
          state: jsonText(state ?? undefined, `run ${id}: the state of the next run`),
        }),
      retryIn,
      snooze,
      inputs: async () => (await this.#ask("inputs", [])) as Awaited<ReturnType<Run["inputs"]>>,
      complete: async (transaction, result) => {
        const client = clientOf("run.complete's client", transaction);
        await this.#ask("complete", [checked(result, `run ${id}: result`)], client);
      },
    };
  }

  #ask(name: Asked, given: unknown[], client?: SqlClient): Promise<unknown> {
    const question = this.#asked++;
    return new Promise((resolve, reject) => {
      this.#questions.set(question, { resolve, reject, client });
      this.#post({ kind: "ask", turn: this.turn, question, name, given });
    });
  }

  #signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#reason) this.#controller.abort(this.#reason.thrown);
    }
    return this.#controller.signal;
  }

  #log(): RunLog {
    const { turn } = this;
    const write = (level: keyof RunLog) => (message: string, fields?: Record<string, unknown>) =>
      this.#post({ kind: "log", turn, level, message: messageOf(message), fields: logFields(fields) });
    return { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
  }
}
