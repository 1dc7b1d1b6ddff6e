import type { HandedSecrets } from "../../access/secrets/secrets.ts";
import { CarillonError } from "../../base/errors.ts";
import { type Json, jsonText } from "../../base/json.ts";
import { limits } from "../../base/limits.ts";
import type { ClaimedRun } from "../../run/claim-store.ts";
import { checkKey } from "../../run/enqueue-options.ts";
import { type ChildWrite, Continuation, type RunFlow } from "../../run/flow.ts";
import type { ChildSpec, Run, RunLog } from "../../run/handler.ts";
import { retryIn, snooze } from "../../run/handling/postponed.ts";
import type { Enqueued } from "../../run/run-record.ts";

/** The claimed run from which a `Run` is made. The handler sees only the part that `Run` has. */
export interface RunBehind
  extends Pick<
    Run,
    | "id"
    | "task"
    | "schedule"
    | "slot"
    | "due"
    | "attempt"
    | "key"
    | "labels"
    | "shard"
    | "fence"
    | "signal"
    | "log"
    | "progress"
    | "complete"
  > {
  readonly claim: Pick<ClaimedRun, "state">;
}

/**
 * The `Run` that a handler receives: the run's data and operations, without the claim's internal state. Its methods are getters that return
 * bound functions, so a handler can destructure the run: `({ log, progress }, payload) => …`.
 */
export class HandedRun implements Run {
  readonly #run: RunBehind;
  readonly #host: FlowHost;
  #state: Json;
  /** Settles when the latest save has settled. Saves of the state are made one after the other, even if the handler does not await them. */
  #saving: Promise<unknown> | undefined;
  #children = 0;
  #spawning: Spawning[] | undefined;
  #taskIds: Map<string, Promise<number>> | undefined;

  constructor(run: RunBehind, host: FlowHost) {
    this.#run = run;
    this.#host = host;
    this.#state = run.claim.state ?? null;
  }

  get id(): number {
    return this.#run.id;
  }

  get task(): string {
    return this.#run.task;
  }

  get schedule(): string | null {
    return this.#run.schedule;
  }

  get slot(): Date | null {
    return this.#run.slot;
  }

  get due(): Date {
    return this.#run.due;
  }

  get attempt(): number {
    return this.#run.attempt;
  }

  get key(): string | null {
    return this.#run.key;
  }

  get labels(): Run["labels"] {
    return this.#run.labels;
  }

  get shard(): Run["shard"] {
    return this.#run.shard;
  }

  get fence(): number {
    return this.#run.fence;
  }

  get signal(): AbortSignal {
    return this.#run.signal;
  }

  get log(): RunLog {
    return this.#run.log;
  }

  get secret(): Run["secret"] {
    return (...given) => this.#secret(...given);
  }

  get progress(): Run["progress"] {
    return (value) => this.#run.progress(value);
  }

  get complete(): Run["complete"] {
    return (...given) => this.#run.complete(...given);
  }

  get state(): Json {
    return this.#state;
  }

  get saveState(): Run["saveState"] {
    return (value) => this.#saveState(value);
  }

  get spawn(): Run["spawn"] {
    return (...given) => this.#spawn(...given);
  }

  get fanOut(): Run["fanOut"] {
    return (...given) => this.#fanOut(...given);
  }

  get continueAs(): Run["continueAs"] {
    return (...given) => this.#continueAs(...given);
  }

  get retryIn(): Run["retryIn"] {
    return retryIn;
  }

  get snooze(): Run["snooze"] {
    return snooze;
  }

  get inputs(): Run["inputs"] {
    return async () => this.#flow.inputs(this.#asking);
  }

  async #secret(name: string, { version }: { version?: number } = {}): Promise<string> {
    const { secrets } = this.#host;
    if (secrets) return secrets.open(this.#asking, name, version);
    throw new CarillonError("STORE_NEEDED", "this worker is given no secrets", {
      hint: "Run this task in a process with the store and the key, or in a remote worker.",
    });
  }

  async #saveState(value: unknown): Promise<void> {
    const text = this.#shown(value ?? undefined, `run ${this.id}: state`);
    const save = () => this.#flow.saveState(this.id, this.fence, text);
    const saved = this.#saving ? this.#saving.then(save) : save();
    // The caller of a failed save receives its error; the next save must still be made.
    this.#saving = saved.catch(() => undefined);
    if (!(await saved))
      throw new CarillonError("FENCE_STALE", `run ${this.id} is no longer this worker's, so its state is not kept`);
    this.#state = text === null ? null : (JSON.parse(text) as Json);
  }

  async #spawn(task: string, payload?: unknown, { key }: { key?: string } = {}): Promise<Enqueued> {
    checkKey("a child's key", key);
    this.#refuseOver(1);
    // The number is taken before the first await, so children are numbered in the order in which the handler spawned them.
    const name = key ?? `#${this.#children}`;
    this.#children++;
    const text = this.#shown(payload, `run ${this.id}: the payload of its child`);
    const taskId = await this.#taskId(task);
    return new Promise((resolve, reject) => {
      const spawning = { write: { taskId, payload: text, key: name }, resolve, reject };
      if (this.#spawning) {
        this.#spawning.push(spawning);
        return;
      }
      const some = [spawning];
      this.#spawning = some;
      queueMicrotask(() => void this.#spawnAll(some));
    });
  }

  async #fanOut(children: ChildSpec[], { join, payload }: { join: string; payload?: unknown }): Promise<Continuation> {
    this.#refuseOver(children.length);
    const text = this.#shown(payload, `run ${this.id}: the payload of ${join}`);
    const taskId = await this.#taskId(join);
    await Promise.all(
      children.map(({ task, payload, key }) => this.#spawn(task, payload, key === undefined ? {} : { key })),
    );
    return new Continuation({ kind: "join", taskId, payload: text });
  }

  #continueAs(payload?: unknown, { state }: { state?: unknown } = {}): Continuation {
    this.#flow; // Throws here if there is no flow, not only when the verdict is stored.
    return new Continuation({
      kind: "continue",
      payload: this.#shown(payload, `run ${this.id}: the payload of the next run`),
      state: this.#shown(state ?? undefined, `run ${this.id}: the state of the next run`),
    });
  }

  get #asking() {
    return { runId: this.id, fence: this.fence };
  }

  get #flow(): RunFlow {
    const { flow } = this.#host;
    if (flow) return flow;
    throw new CarillonError(
      "STORE_NEEDED",
      "saveState, spawn, fanOut, continueAs and inputs need a store, and this worker has none",
      { hint: "Run this task in a process with the store, or in a remote worker." },
    );
  }

  /**
   * Returns the value as JSON that is stored for other runs to read.
   * @throws if the value is no JSON, is too large, or exposes a secret
   */
  #shown(value: unknown, what: string): string | null {
    const text = jsonText(value, what);
    this.#host.secrets?.refuseExposed(text, what);
    return text;
  }

  /**
   * Checks the number of children before any of them is created.
   * @throws OPTION_INVALID if `more` further children would exceed the number that one run may have
   */
  #refuseOver(more: number): void {
    if (this.#children + more > limits.children)
      throw new CarillonError("OPTION_INVALID", `run ${this.id} would have more than ${limits.children} children`);
  }

  #taskId(name: string): Promise<number> {
    this.#taskIds ??= new Map();
    const known = this.#taskIds.get(name);
    if (known) return known;
    const asked = this.#flow.taskId(name, this.#asking);
    this.#taskIds.set(name, asked);
    // The error goes to all callers that share this request; the next call retries.
    asked.catch(() => this.#taskIds?.delete(name));
    return asked;
  }

  /** Sends the children that were spawned since the last call, at most `limits.childrenAtOnce` in one request. */
  async #spawnAll(some: Spawning[]): Promise<void> {
    this.#spawning = undefined;
    for (let from = 0; from < some.length; from += limits.childrenAtOnce) {
      const batch = some.slice(from, from + limits.childrenAtOnce);
      try {
        const made = await this.#flow.spawn(
          this.#asking,
          batch.map(({ write }) => write),
          this.#host.now(),
        );
        batch.forEach(({ resolve }, place) => {
          resolve(made[place] as Enqueued);
        });
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
  }
}

export interface FlowHost {
  readonly flow: RunFlow | undefined;
  readonly secrets: HandedSecrets | undefined;
  now(): number;
}

interface Spawning {
  write: ChildWrite;
  resolve: (made: Enqueued) => void;
  reject: (error: unknown) => void;
}
