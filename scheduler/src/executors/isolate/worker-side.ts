import { CarillonError } from "../../base/errors.ts";
import { Continuation } from "../../run/flow.ts";
import type { Run } from "../../run/handler.ts";
import { Snooze } from "../../run/handling/postponed.ts";
import type { Ended, FromHost, RunFields, ToHost } from "./messages.ts";
import { received, sent } from "./thrown.ts";

export const fieldsOf = ({
  id,
  task,
  schedule,
  attempt,
  key,
  labels,
  shard,
  fence,
  state,
  slot,
  due,
}: Run): RunFields => ({
  id,
  task,
  schedule,
  attempt,
  key,
  labels,
  shard,
  fence,
  state,
  slotMs: slot?.getTime() ?? null,
  dueMs: due.getTime(),
});

/** The worker's counterpart of a run in a host: executes the calls that the host forwards on the worker's own `Run`. */
export class WorkerSide {
  readonly #run: Run;
  readonly #turn: number;
  readonly #send: (message: ToHost) => void;
  readonly #queries = new Map<number, { resolve: (rows: never) => void; reject: (error: unknown) => void }>();
  #asked = 0;

  constructor(run: Run, turn: number, send: (message: ToHost) => void) {
    this.#run = run;
    this.#turn = turn;
    this.#send = send;
  }

  take(message: FromHost): void {
    if (message.kind === "log") this.#run.log[message.level](message.message, (message.fields ?? undefined) as never);
    else if (message.kind === "progress") this.#run.progress(message.value);
    else if (message.kind === "ask") void this.#answer(message);
    else if (message.kind === "queried") {
      const { query, outcome } = message;
      const open = this.#queries.get(query);
      this.#queries.delete(query);
      if ("thrown" in outcome) open?.reject(received(outcome.thrown, this.#reason));
      else open?.resolve({ rows: outcome.value } as never);
    }
  }

  /** Converts the host's report to the handler's result. @throws the error that the handler threw */
  result(ended: Ended): unknown {
    if ("thrown" in ended) throw received(ended.thrown, this.#reason);
    if ("snoozeMs" in ended) return new Snooze(ended.snoozeMs);
    if ("text" in ended) return ended.text === null ? undefined : JSON.parse(ended.text);
    const { onward } = ended;
    if (onward.kind !== "continue") return new Continuation(onward);
    const value = (text: string | null) => (text === null ? undefined : JSON.parse(text));
    // Checked here again, because only the worker knows the values of secrets.
    return this.#run.continueAs(value(onward.payload), { state: value(onward.state) });
  }

  get #reason(): unknown {
    return this.#run.signal.reason;
  }

  async #answer({ question, name, given }: FromHost & { kind: "ask" }): Promise<void> {
    const [turn, run] = [this.#turn, this.#run];
    try {
      const answer =
        name === "complete"
          ? run.complete(
              { query: (text: string, values?: unknown[]) => this.#query(question, text, values) as never },
              given[0],
            )
          : (run[name] as (...given: unknown[]) => Promise<unknown>)(...given);
      const value = await answer;
      const plain = value instanceof Continuation ? value.onward : value;
      this.#send({ kind: "answer", turn, question, outcome: { value: plain } });
    } catch (error) {
      this.#send({ kind: "answer", turn, question, outcome: { thrown: sent(error, this.#reason) } });
    }
  }

  #query(question: number, text: string, values: unknown[] | undefined): Promise<unknown> {
    const query = this.#asked++;
    return new Promise((resolve, reject) => {
      this.#queries.set(query, { resolve, reject });
      this.#send({ kind: "query", turn: this.#turn, query, question, text, values });
    });
  }
}

/** The error if the schema in the task's code converts the payload to a value that cannot be sent to a host. */
export const cannotBeSent = (task: string, error: unknown) =>
  new CarillonError(
    "PAYLOAD_INVALID",
    `what the schema of task ${task} makes of its payload cannot be handed to an isolated handler: ${String(error)}`,
    {
      hint: "Let the schema make JSON, dates, maps and the like, and nothing with functions.",
      cause: error,
    },
  );
