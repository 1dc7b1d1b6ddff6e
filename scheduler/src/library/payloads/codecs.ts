import type { Clock } from "../../base/clock.ts";
import { CarillonError, messageOf } from "../../base/errors.ts";
import { type Json, jsonText } from "../../base/json.ts";
import type { Log } from "../../base/log.ts";
import type { ClaimStore, Settlement } from "../../run/claim-store.ts";
import { Continuation, type Onward, type RunFlow } from "../../run/flow.ts";
import type { Handler, Run } from "../../run/handler.ts";
import type { RunRecord } from "../../run/run-record.ts";
import type { PayloadCodec } from "../../settings/payload-codec.ts";
import type { Settings } from "../../settings/settings.ts";
import type { Followed } from "../../store/followed-run.ts";
import { encodedField, encodedText, storedKey } from "../../task/kinds/encoded.ts";
import { nameOfSchedule } from "../../task/schedule-of.ts";
import { withOwn } from "../../telemetry/tracing.ts";
import { Outside } from "./outside.ts";

/**
 * The maximum number of tracked runs. Above it, the oldest entries are dropped; most of them belong to runs that were never
 * settled.
 */
const startedMost = 50_000;

/**
 * Encodes payloads and results on their way to the store or a server, and decodes them on their way back: by the configured
 * codec, and by moving large values to the payload store. Values are encoded after they have been validated and their secrets
 * redacted; they are decoded just before a handler or caller gets them.
 */
export class Codecs {
  readonly #codec: PayloadCodec | null;
  readonly #outside: Outside;
  readonly #clock: Clock;
  readonly #log: Log;
  /** The task names of runs in progress, by the fence of the run's claim. */
  readonly #started = new Map<number, string>();
  readonly #names = new Map<number, string>();
  readonly #handlers = new WeakMap<Handler, Handler>();

  constructor({ codec, payloads }: Pick<Settings, "codec" | "payloads">, clock: Clock, log: Log) {
    this.#codec = codec;
    this.#outside = new Outside(payloads);
    this.#clock = clock;
    this.#log = log;
  }

  get encodes(): boolean {
    return this.#codec !== null || !this.#outside.isNone;
  }

  /**
   * Encodes a JSON text.
   * @param text null is returned unchanged
   * @throws CODEC_FAILED, PAYLOAD_STORE_FAILED, PAYLOAD_TOO_LARGE
   */
  async encoded<Text extends string | null>(text: Text, task: string, what: string): Promise<Text> {
    if (text === null || !this.encodes) return text;
    const encoded = await this.#encode(text, task, what);
    return (await this.#outside.put(encoded, what, this.#clock.wall())) as Text;
  }

  async #encode(text: string, task: string, what: string): Promise<string> {
    const codec = this.#codec;
    if (!codec) return text;
    let made: unknown;
    try {
      made = await codec.encode(text, { task });
    } catch (cause) {
      throw failed(`${what} could not be encoded: ${messageOf(cause)}`, cause);
    }
    if (typeof made !== "string") throw failed(`${what} could not be encoded: encode gave no text`);
    const kept = { [encodedField]: made };
    return this.#outside.isNone ? (jsonText(kept, what) as string) : JSON.stringify(kept);
  }

  /** Decodes a value from the store; a value that is not encoded is returned unchanged. @throws CODEC_FAILED, PAYLOAD_STORE_FAILED */
  async decoded(stored: Json, task: string, what: string): Promise<Json> {
    const value = await this.#outside.get(stored, what);
    const text = encodedText(value);
    if (text === undefined) return value;
    if (!this.#codec) throw failed(`${what} is encoded, and this process has no codec`);
    let plain: unknown;
    try {
      plain = await this.#codec.decode(text, { task });
    } catch (cause) {
      throw failed(`${what} could not be decoded: ${messageOf(cause)}`, cause);
    }
    try {
      return JSON.parse(plain as string) as Json;
    } catch {
      // The parser's own error is dropped, because its message would quote the decoded payload.
      throw failed(`${what} could not be decoded: decode gave no JSON`);
    }
  }

  /**
   * Returns the run with its payload and result decoded, or unchanged where this process cannot decode them, for example without the key.
   */
  async shown(run: RunRecord): Promise<RunRecord> {
    const [payload, result] = await Promise.all([
      this.opened(run.payload, run.task),
      this.opened(run.result, run.task),
    ]);
    return { ...run, payload, result };
  }

  /** Applies `shown` to each state of a run that a caller follows. */
  async *followed(steps: AsyncIterable<Followed>): AsyncGenerator<Followed> {
    for await (const step of steps) yield "run" in step ? { ...step, run: await this.shown(step.run) } : step;
  }

  /** Returns the decoded value, or the stored value if this process cannot decode it. */
  opened(value: Json, task: string): Promise<Json> {
    return this.decoded(value, task, "it").catch(() => value);
  }

  /** Wraps a task's handler for the worker, so that payloads are decoded. Without a codec, the run fails if its payload is encoded. */
  handler(handler: Handler): Handler {
    const known = this.#handlers.get(handler);
    if (known) return known;
    const made = this.encodes ? this.#decoding(handler) : this.#refusing(handler);
    this.#handlers.set(handler, made);
    return made;
  }

  #refusing(handler: Handler): Handler {
    return (run, payload) =>
      encodedText(payload) === undefined && storedKey(payload) === undefined
        ? handler(run, payload)
        : this.#read(run, payload as Json);
  }

  #decoding(handler: Handler): Handler {
    return async (run, payload) => {
      const task = taskOf(run);
      this.#started.set(run.fence, task);
      if (this.#started.size > startedMost) this.#started.delete(this.#started.keys().next().value as number);
      const given = await handler(run, await this.#read(run, payload as Json));
      return given instanceof Continuation ? new Continuation(await this.#onward(given.onward, run, task)) : given;
    };
  }

  #read(run: Run, payload: Json): Promise<Json> {
    return this.decoded(payload, taskOf(run), `the payload of run ${run.id}`);
  }

  async #onward(onward: Onward, { id }: Run, task: string): Promise<Onward> {
    const next = onward.kind === "join" ? (this.#names.get(onward.taskId) as string) : task;
    return { ...onward, payload: await this.encoded(onward.payload, next, `run ${id}: the payload of the next run`) };
  }

  /** Wraps a claim store, so that results are encoded before they are stored. */
  around<Claims extends Pick<ClaimStore, "settle" | "settleIn">>(claims: Claims): Claims {
    if (!this.encodes) return claims;
    return withOwn(claims, {
      settle: async (...[sessionId, settlements, nowMs]: Parameters<ClaimStore["settle"]>) => {
        const encoded = await Promise.all(settlements.map((one) => this.#settlement(one)));
        const settled = await claims.settle(sessionId, encoded, nowMs);
        for (const { fence } of settlements) this.#started.delete(fence);
        return settled;
      },
      settleIn: async (...[client, sessionId, settlement, nowMs]: Parameters<ClaimStore["settleIn"]>) =>
        claims.settleIn(client, sessionId, await this.#settlement(settlement), nowMs),
    });
  }

  async #settlement(settlement: Settlement): Promise<Settlement> {
    const { verdict, fence, runId } = settlement;
    const task = this.#started.get(fence);
    if (verdict.kind !== "ended" || verdict.result === null || task === undefined) return settlement;
    try {
      return {
        ...settlement,
        verdict: { ...verdict, result: await this.encoded(verdict.result, task, `run ${runId}: result`) },
      };
    } catch (error) {
      // The handler has succeeded, so the run still succeeds; only its result is dropped.
      this.#log.warn({ run: runId, error: messageOf(error) }, "a result was not kept, since it could not be encoded");
      return { ...settlement, verdict: { ...verdict, result: null } };
    }
  }

  flow(flow: RunFlow): RunFlow {
    if (!this.encodes) return flow;
    return withOwn(flow, {
      taskId: async (...[name, asking]: Parameters<RunFlow["taskId"]>) => {
        const taskId = await flow.taskId(name, asking);
        this.#names.set(taskId, name);
        return taskId;
      },
      spawn: async (...[parent, children, nowMs]: Parameters<RunFlow["spawn"]>) => {
        const what = `run ${parent.runId}: the payload of its child`;
        const encoded = children.map(async (child) => ({
          ...child,
          payload: await this.encoded(child.payload, this.#names.get(child.taskId) as string, what),
        }));
        return flow.spawn(parent, await Promise.all(encoded), nowMs);
      },
      inputs: async (...[asking]: Parameters<RunFlow["inputs"]>) => {
        const inputs = await flow.inputs(asking);
        const decoded = inputs.map(async (input) => ({
          ...input,
          result: await this.decoded(input.result, input.task, `the result of run ${input.runId}`),
        }));
        return Promise.all(decoded);
      },
    });
  }
}

/** Returns the task's name in the store. A run of one of the task's named schedules is stored under that schedule's name. */
const taskOf = ({ task, schedule }: Run): string => (schedule === null ? task : nameOfSchedule(task, schedule));

const failed = (what: string, cause?: unknown) =>
  new CarillonError("CODEC_FAILED", what, {
    hint: "Give this process the codec, and the key, with which it was encoded.",
    cause,
  });
