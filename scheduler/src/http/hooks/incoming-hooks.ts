import type { FastifyInstance, FastifyRequest } from "fastify";
import { defaultUniqueFor } from "../../access/hooks/hook.ts";
import type { HookStore, KeyedHook } from "../../access/hooks/hook-store.ts";
import { type HookRun, keyOf, runOf } from "../../access/hooks/mapping.ts";
import { hookRefused, verifyRequest } from "../../access/hooks/verify.ts";
import type { SecretKeys } from "../../access/secrets/secret-keys.ts";
import type { Clock } from "../../base/clock.ts";
import { CarillonError, isCarillonError, messageOf } from "../../base/errors.ts";
import { readJson } from "../../base/json.ts";
import { limits } from "../../base/limits.ts";
import type { Log } from "../../base/log.ts";
import { keyOverTime } from "../../run/keys/key-over-time.ts";
import { CachedRead } from "../../store/cached-read.ts";
import { type Enqueues, payloadBytes } from "../../store/enqueues.ts";
import type { StoreClock } from "../../store/store-clock.ts";
import { traceparentOf } from "../../store/trace-context.ts";
import type { Quotas } from "../quotas.ts";

export interface IncomingHooksOptions {
  hooks: HookStore;
  clock: Clock;
  storeClock: StoreClock;
  log: Log;
  secretKeys: SecretKeys;
  enqueues: Enqueues;
  quotas: Quotas;
  /** @throws STOPPED once this server stops */
  checkServing: () => void;
}

/** How long the hooks are cached, in ms. Requests with wrong signatures therefore cost the store at most one query in this time. */
const freshMs = 1_000;
/** The shortest interval in ms between two log lines about one hook whose secret cannot be decrypted. */
const logAgainMs = 60_000;
const path = "/v1/hooks/";

/** A cached hook with its decrypted secret; null if the hook is disabled, has no secret, or its secret cannot be decrypted. */
interface Ready {
  hook: KeyedHook;
  secret: string | null;
}

/** Receives the requests of incoming webhooks, verifies them and enqueues their runs. See docs/tasks/hooks.md. */
export class IncomingHooks {
  readonly #options: IncomingHooksOptions;
  readonly #hooks: CachedRead<ReadonlyMap<string, Ready>>;
  /** For each hook whose secret cannot be decrypted: when that was last logged, by the monotonic clock. */
  readonly #shutMono = new Map<string, number>();

  constructor(options: IncomingHooksOptions) {
    this.#options = options;
    const { clock, hooks } = options;
    const read = async () => new Map((await hooks.keyed()).map((hook) => [hook.name, this.#ready(hook)]));
    this.#hooks = new CachedRead(clock, freshMs, read);
  }

  /** Called after a hook was changed on this server. A change on another server takes effect here after `freshMs`. */
  forget(): void {
    this.#hooks.forget();
  }

  register(app: FastifyInstance): void {
    void app.register(async (own) => {
      // A signature covers the bytes of the body as they were sent, so they are not parsed before they are verified.
      own.removeAllContentTypeParsers();
      own.addContentTypeParser("*", { parseAs: "buffer" }, (_, body, done) => done(null, body));
      // A wildcard, because the / of a name may arrive encoded or not.
      own.post(
        `${path}*`,
        { config: { policy: "anyone", touches: "nothing" }, bodyLimit: limits.requestBytes },
        async (request, reply) => {
          const enqueued = await this.#receive(request);
          return reply.code(enqueued ? 202 : 200).send(enqueued ?? { ignored: true });
        },
      );
    });
  }

  /** @returns null if the hook has no task for the request @throws HOOK_REFUSED, STOPPED, and the errors of an enqueue */
  async #receive(request: FastifyRequest): Promise<{ run: number; created: boolean } | null> {
    this.#options.checkServing();
    const { "*": name } = request.params as { "*": string };
    const raw = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
    const found = (await this.#hooks.get()).get(name);
    const nowMs = this.#options.storeClock.now();
    const { hook, secret } = found ?? { hook: decoy, secret: null };
    // The signature is computed for an unknown hook too, so that the time of the answer does not reveal which hooks exist.
    verifyRequest(hook.content, secret ?? decoySecret, { headers: request.headers, raw }, nowMs);
    if (secret === null) throw hookRefused();
    try {
      const body: unknown = bodyOf(raw);
      const run = runOf(hook.content, { headers: request.headers, body });
      return run && (await this.#enqueue(hook, run, request, nowMs));
    } catch (error) {
      // The sender is authentic. The operator of this server may not see what the sender gets, so the log has it too.
      if (isCarillonError(error))
        this.#options.log.warn({ hook: name, code: error.code, error: error.message }, "a hook's request was refused");
      throw error;
    }
  }

  async #enqueue(
    { name, content }: KeyedHook,
    { task, payload, key: given, in: delay }: HookRun,
    request: FastifyRequest,
    nowMs: number,
  ) {
    const { enqueues, quotas } = this.#options;
    const key = given === undefined ? undefined : keyOf(name, given);
    const uniqueFor = key === undefined ? undefined : (content.uniqueFor ?? defaultUniqueFor);
    const options = { in: delay, key, uniqueFor, labels: { hook: name } };
    const write = await enqueues.writeOf({ task, payload, key, source: "enqueue" }, options, nowMs);
    await quotas.take(`hook ${name}`, async () => [{ task, payloadBytes: payloadBytes(write.payload) }]);
    const traceparent = traceparentOf(request.headers.traceparent);
    const { runId, created } = await enqueues.one(task, { ...write, ...keyOverTime(options) }, traceparent, nowMs);
    return { run: runId, created };
  }

  /** Decrypts the hook's secret. */
  #ready(hook: KeyedHook): Ready {
    const { content, sealed } = hook;
    if (content.enabled === false || sealed === null) return { hook, secret: null };
    try {
      return { hook, secret: this.#options.secretKeys.open(sealed, sealed) };
    } catch (error) {
      this.#tellShut(hook.name, error);
      return { hook, secret: null };
    }
  }

  /**
   * Logs that a secret cannot be decrypted, at most once per hook and `logAgainMs`, because unknown clients decide how often requests
   * arrive.
   */
  #tellShut(hook: string, error: unknown): void {
    const nowMono = this.#options.clock.monotonic();
    for (const [name, mono] of this.#shutMono) if (mono + logAgainMs <= nowMono) this.#shutMono.delete(name);
    if (this.#shutMono.has(hook)) return;
    this.#shutMono.set(hook, nowMono);
    this.#options.log.error({ hook, error: messageOf(error) }, "the secret of a hook cannot be opened");
  }
}

/** Verified in place of a hook that does not exist. */
const decoy: KeyedHook = {
  name: "",
  version: 0,
  author: "",
  reason: "",
  changedMs: 0,
  bundle: null,
  sealed: null,
  content: { secret: "", scheme: "github", task: "" },
};
const decoySecret = "no hook has this secret";

/**
 * Without `fatal`, bytes that are not UTF-8 would become other text. With `ignoreBOM`, a byte order mark stays in the text, which is then
 * refused as JSON.
 */
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** @throws REQUEST_INVALID for a body that is not JSON in UTF-8, PAYLOAD_NOT_JSON for one with numbers that would lose precision */
function bodyOf(raw: Buffer): unknown {
  try {
    return readJson(utf8.decode(raw), "the body");
  } catch (cause) {
    if (isCarillonError(cause)) throw cause;
    throw new CarillonError("REQUEST_INVALID", "the body is not JSON in UTF-8", {
      hint: "Let the sender use the content type application/json.",
      cause,
    });
  }
}
