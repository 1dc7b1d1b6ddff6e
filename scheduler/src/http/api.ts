import { setMaxListeners } from "node:events";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { checkPolicy, type Principal, Reach } from "../access/access.ts";
import type { PasswordCheck } from "../access/password.ts";
import type { SecretKeys } from "../access/secrets/secret-keys.ts";
import { isKept, type RouteShape, writes } from "../api/contract/route.ts";
import { type RouteId, routeIds, shapeOf } from "../api/contract.ts";
import { tellDeprecated } from "../api/deprecation.ts";
import { eventText } from "../api/event-reader.ts";
import { describeApi } from "../api/openapi.ts";
import type { Clock } from "../base/clock.ts";
import { CarillonError, isCarillonError, messageOf } from "../base/errors.ts";
import { limits } from "../base/limits.ts";
import type { Log } from "../base/log.ts";
import { version } from "../base/version.ts";
import type { Signal } from "../cluster/signal-store.ts";
import { operationUnknown } from "../run/operations.ts";
import { runUnknown } from "../run/run.ts";
import type { AlarmSettings } from "../settings/alarms/alarms.ts";
import type { ProviderSettings } from "../settings/provider.ts";
import type { SignInSettings } from "../settings/settings.ts";
import type { Enqueuer } from "../store/enqueuer.ts";
import { Enqueues } from "../store/enqueues.ts";
import type { Store } from "../store/store.ts";
import type { StoreClock } from "../store/store-clock.ts";
import { type EnqueueTracing, traceparentOf } from "../store/trace-context.ts";
import { bundleCalls } from "./bundles/bundle-calls.ts";
import type { Call, Handlers } from "./call.ts";
import { alarmCalls } from "./calls/alarm-calls.ts";
import { auditCalls } from "./calls/audit-calls.ts";
import { clusterCalls } from "./calls/cluster-calls.ts";
import { calendarCalls, isWithin, operationCalls } from "./calls/operation-calls.ts";
import { runActCalls } from "./calls/run-act-calls.ts";
import { knownTaskIds, runCalls } from "./calls/run-calls.ts";
import { secretCalls } from "./calls/secret-calls.ts";
import { passwordJudge, signInCalls } from "./calls/sign-in-calls.ts";
import { slotCalls } from "./calls/slot-calls.ts";
import { taskCalls } from "./calls/task-calls.ts";
import { taskChangeCalls } from "./calls/task-change-calls.ts";
import { timelineCalls } from "./calls/timeline-calls.ts";
import { tokenCalls } from "./calls/token-calls.ts";
import { userCalls } from "./calls/user-calls.ts";
import { workerKeyCalls } from "./calls/worker-key-calls.ts";
import { eventCalls } from "./events/event-calls.ts";
import { explainCalls } from "./explain/explain-calls.ts";
import { ifVersionOf, readGiven } from "./given.ts";
import { agentOf, checkOrigin, cookieName, cookieText, readCookie, readCookieOf, streamHeaders } from "./guard.ts";
import { hookCalls } from "./hooks/hook-calls.ts";
import { IncomingHooks } from "./hooks/incoming-hooks.ts";
import { tailOf } from "./log-tail.ts";
import { quotaCalls } from "./quota-calls.ts";
import type { Quotas } from "./quotas.ts";
import { type Answered, Repeated, tokenOfItsOwn } from "./repeated.ts";
import { send, sendText } from "./sent.ts";
import { knownBrowserMs, knownBrowserShape } from "./sign-in/known-browser.ts";
import { needed, Principals } from "./sign-in/principals.ts";
import { secondFactorCalls } from "./sign-in/second-factor-calls.ts";
import { SecondFactors } from "./sign-in/second-factors.ts";
import type { SecurityLog } from "./sign-in/security-log.ts";
import { Throttle } from "./sign-in/throttle.ts";
import { checkUrlToken, urlTokenOf } from "./sign-in/url-token.ts";
import { LiveEvents } from "./streams.ts";
import { unpack } from "./unpacked.ts";
import { beatLine } from "./workers/line-beat.ts";

export interface ApiOptions {
  store: Store;
  clock: Clock;
  storeClock: StoreClock;
  log: Log;
  /** The name of this node. */
  node: string;
  behindProxy: boolean;
  /** The path at which a proxy serves this server; "" if there is none. */
  basePath: string;
  /** The identity provider (OpenID Connect) by which users sign in, besides passwords; null if there is none. */
  provider: ProviderSettings | null;
  signIns: SignInSettings;
  security: SecurityLog;
  checkPassword: PasswordCheck;
  /** This process's enqueuer, which inserts runs. */
  enqueuer: Pick<Enqueuer, "add">;
  quotas: Quotas;
  tracing: EnqueueTracing | undefined;
  secretKeys: SecretKeys;
  /** The alarm settings of this process; null if it has none. */
  alarms: AlarmSettings | null;
  /** Called after a worker key was revoked, before the request is answered. */
  onKeyRevoked: (keyId: number) => void;
}

const openapiPath = "/v1/openapi.json";

/** The authenticated caller of a request. */
export interface Shown {
  who: Principal;
  reach: Reach;
  begunMs: number | null;
  expiresMs: number;
  isProven: boolean;
  cookie: string | null;
}

/** Serves all routes of the API contract, each protected by its policy. */
export class Api {
  readonly #options: ApiOptions;
  readonly #principals: Principals;
  readonly #repeated: Repeated;
  readonly #events: LiveEvents;
  readonly #factors: SecondFactors;
  readonly #hooks: IncomingHooks;
  readonly #handlers: Handlers;
  readonly #stopping = new AbortController();
  /** The event streams in progress, each with the name of its user. */
  readonly #streams = new Map<Promise<unknown>, string>();

  constructor(options: ApiOptions) {
    const { store, clock, storeClock, log, node, enqueuer, quotas, tracing } = options;
    const now = () => storeClock.now();
    // Every waiting request listens to this signal, and Node.js warns of a leak above ten listeners.
    setMaxListeners(0, this.#stopping.signal);
    this.#options = options;
    this.#principals = new Principals(store.access, clock, now, log, options.signIns.idleMs);
    this.#repeated = new Repeated(store.answers, log);
    this.#events = new LiveEvents(store.browse, clock, now, log);
    const taskIdOf = knownTaskIds(store);
    this.#factors = new SecondFactors(store.secondFactors, options);
    const enqueues = new Enqueues({ runs: store.runs, enqueuer, tracing, taskIdOf });
    const checkServing = () => this.#checkServing();
    this.#hooks = new IncomingHooks({ ...options, hooks: store.hooks, enqueues, checkServing });
    const judged = passwordJudge(store, new Throttle(clock), options.security);
    const signsIn = { principals: this.#principals, factors: this.#factors, judged };
    this.#handlers = {
      ...taskCalls(store),
      ...taskChangeCalls(store, clock),
      ...slotCalls(store),
      ...bundleCalls(store, { clock, now, alarms: options.alarms }, () => this.#hooks.forget()),
      ...timelineCalls(store, clock),
      ...runCalls({ store, taskIdOf, tail: tailOf(store, clock) }),
      ...explainCalls(() => this.#handlers, store.groups),
      ...runActCalls({ store, clock, enqueues, quotas }),
      ...operationCalls(store, quotas),
      ...calendarCalls(store, clock),
      ...clusterCalls(store, node, this.#events.follow),
      ...eventCalls({ events: store.events, clock, now, log }),
      ...quotaCalls(store.quotas, quotas, this.#streamsOf),
      ...alarmCalls(store, options.alarms),
      ...secretCalls(store, options.secretKeys),
      ...signInCalls({ ...options, ...signsIn }),
      ...secondFactorCalls({ access: store.access, ...signsIn }),
      ...userCalls(store, this.#principals, options.signIns.idleMs, options.checkPassword),
      ...tokenCalls(store, this.#principals),
      ...workerKeyCalls(store, options.onKeyRevoked),
      ...auditCalls(store),
      ...hookCalls(store.hooks, () => this.#hooks.forget()),
    };
  }

  register(app: FastifyInstance): void {
    for (const routeId of routeIds) {
      const shape = shapeOf(routeId);
      app.route({
        method: shape.method,
        url: shape.path.replace(/\{(\w+)\}/g, ":$1"),
        config: { policy: shape.policy, touches: shape.touches },
        // This hook decompresses requests only. `sendText` compresses large answers, because a hook for that would run for every answer.
        ...(writes(shape) ? { preParsing: unpack } : {}),
        bodyLimit: shape.large ? limits.largeRequestBytes : limits.requestBytes,
        // Checked before the body is read, so that on protected routes the server reads no body from an unknown caller.
        onRequest: async (request, reply) => {
          if (shape.deprecated) tellDeprecated(reply.raw, shape.deprecated);
          request.shown = await this.admit(request, shape);
        },
        handler: (request, reply) => this.#answer(routeId, shape, request, reply),
      });
    }
    this.#hooks.register(app);
    const description = JSON.stringify(describeApi(version, this.#options.basePath));
    app.get(openapiPath, { config: { policy: "anyone", touches: "nothing" } }, (request, reply) =>
      sendText(request, reply, description),
    );
  }

  /** Registers the routes of the identity provider. Its code is imported only if a provider is configured, to keep other starts fast. */
  async registerProvider(app: FastifyInstance): Promise<void> {
    const { provider, store, clock, storeClock, log, security, signIns } = this.#options;
    if (!provider) return;
    const { Provider } = await import("./sign-in/provider.ts");
    const onChanged = () => this.#principals.forget();
    const nowMs = () => storeClock.now();
    const signInMs = signIns.lastsMs;
    new Provider(provider, {
      access: store.access,
      clock,
      nowMs,
      log,
      security,
      place: this.#options,
      signInMs,
      onChanged,
    }).register(app);
  }

  onSignal(signal: Signal): void {
    this.#events.onSignal(signal);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#events.close();
    await Promise.allSettled(this.#streams.keys());
  }

  /**
   * Checks the caller. @throws SIGN_IN_NEEDED, TOO_MANY_ATTEMPTS, PASSWORD_TEMPORARY, SECOND_FACTOR_REQUIRED, ACCESS_DENIED, ORIGIN_REFUSED
   */
  async admit(
    request: FastifyRequest,
    shape: Pick<RouteShape, "policy" | "touches" | "noun" | "method" | "byTemporary" | "withoutFactor" | "tokenInUrl">,
  ): Promise<Shown | null> {
    const { policy } = shape;
    const changes = writes(shape);
    if (policy === "anyone") {
      // Signing in sets a cookie. Without this check, a page of another origin could sign a browser in as another user (login CSRF).
      if (changes) checkOrigin(request, true);
      return null;
    }
    if (policy === "worker") throw new Error("the contract's routes are not for workers");
    const inUrl = shape.tokenInUrl ? urlTokenOf(request) : undefined;
    const shown = await this.#shown(request, true, inUrl);
    if (inUrl !== undefined) checkUrlToken(shown.who, shape.noun);
    if (shown.cookie !== null) checkOrigin(request, changes);
    // Set before the policy is checked, so that the security log can name the caller of a refused request.
    request.shown = { ...shown, reach: noReach };
    const { touches, noun, byTemporary } = shape;
    const reach = checkPolicy(shown.who, { policy, touches, noun, writes: changes, byTemporary });
    if (!shape.withoutFactor) this.#factors.demand(shown);
    // If the path contains a name, its namespace is checked even if nothing with that name exists.
    const named = (request.params as Record<string, unknown> | undefined)?.[touches];
    if (isNamed(touches) && typeof named === "string") reach.check(named);
    return { ...shown, reach };
  }

  async #shown(request: FastifyRequest, uses: boolean, inUrl?: string): Promise<Omit<Shown, "reach">> {
    const { authorization } = request.headers;
    if (inUrl !== undefined) return { ...(await this.#principals.ofToken(inUrl, request.ip)), cookie: null };
    if (authorization !== undefined) {
      const token = /^Bearer +(\S+)$/i.exec(authorization)?.[1];
      if (token === undefined) throw needed("the Authorization header has no bearer token");
      return { ...(await this.#principals.ofToken(token, request.ip)), cookie: null };
    }
    const cookie = readCookie(request, cookieName(this.#options));
    if (cookie === null) throw needed("nobody is signed in");
    return { ...(await this.#principals.ofSignIn(cookie, request.ip, uses)), cookie };
  }

  /** @throws STOPPED */
  #checkServing(): void {
    if (this.#stopping.signal.aborted)
      throw new CarillonError("STOPPED", "this server is stopping", { hint: "Go to another one." });
  }

  async #answer(routeId: RouteId, shape: RouteShape, request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    this.#checkServing();
    const given = readGiven(shape, request);
    const ifVersion = ifVersionOf(shape, request.headers["if-match"]);
    if (request.shown) await this.#checkThere(shape, given, request.shown);
    if (shape.event) return this.#stream(routeId, given, request, reply);
    const act = async (drawn: { runIds: number[]; token: string }): Promise<Answered> => {
      const handle = this.#handlers[routeId] as (given: unknown, call: Call) => Promise<unknown>;
      const answer = await handle(given, this.#callOf(request, reply, ifVersion, drawn, this.#stopping.signal));
      const status = shape.answer === null ? 204 : (shape.status ?? 200);
      const version = shape.etag && shape.answer !== null ? (answer as { version: number }).version : null;
      return { status, answer, version };
    };
    const key = request.headers["idempotency-key"];
    const { basePath } = this.#options;
    const who = request.shown?.who;
    if (key === undefined || !isKept(shape) || !who)
      return send(request, reply, shape, basePath, await act(drawnByNone));
    const asked = { route: routeId, given: seenOf(shape, given), ifVersion };
    const { again, ...answered } = await this.#repeated.once(
      {
        who,
        key: keyOf(key),
        request: asked,
        secret: shape.secret === true,
        runs: runsOf(routeId, given),
        nowMs: this.#options.storeClock.now(),
      },
      act,
    );
    if (again) reply.header("idempotency-replayed", "true");
    return send(request, reply, shape, basePath, answered);
  }

  /** Checks access. A run or operation that the caller may not view is unknown. @throws RUN_UNKNOWN, OPERATION_UNKNOWN, ACCESS_DENIED */
  async #checkThere({ touches }: RouteShape, given: Record<string, unknown>, { who, reach }: Shown): Promise<void> {
    if (reach.namespaces === null || (touches !== "run" && touches !== "operation")) return;
    const { store } = this.#options;
    const sees = new Reach(who, "viewer");
    if (touches === "run") {
      const { task } = await store.runs.find(given.run as number);
      if (!sees.has(task)) throw runUnknown(given.run as number);
      reach.check(task);
    } else {
      const { filter } = await store.operations.find(given.operation as number);
      if (!isWithin(filter, sees)) throw operationUnknown(given.operation as number);
      if (!isWithin(filter, reach)) throw reach.refusal("wherever the operation acts");
    }
  }

  /** @param signal the server's own signal; for a stream, a signal that also aborts when the stream's client disconnects */
  #callOf(
    request: FastifyRequest,
    reply: FastifyReply,
    ifVersion: number | null,
    { runIds, token }: { runIds: readonly number[]; token: string },
    signal: AbortSignal,
  ): Call {
    const name = cookieName(this.#options);
    const last = request.headers["last-event-id"];
    const { who = null, reach = noReach, begunMs = null, expiresMs = null } = request.shown ?? {};
    const factorNeeded = request.shown !== null && this.#factors.isLackedBy(request.shown);
    // On a route with the policy `anyone` the cookie has not been checked, so it is only read here and identifies no caller.
    const knownName = `${name}-known`;
    const cookie = request.shown ? request.shown.cookie : readCookie(request, name);
    return {
      who,
      reach,
      begunMs,
      expiresMs,
      factorNeeded,
      ifVersion,
      runIds,
      signal,
      nowMs: this.#options.storeClock.now(),
      address: request.ip,
      agent: agentOf(request),
      token: token === "" && request.method !== "GET" ? tokenOfItsOwn() : token,
      traceparent: traceparentOf(request.headers.traceparent),
      lastEventId: typeof last === "string" ? last : undefined,
      cookie: {
        present: cookie,
        set: (value, maxAgeMs) => void reply.header("set-cookie", cookieText(name, value, maxAgeMs, this.#options)),
      },
      browser: {
        present: readCookieOf(request, knownName, knownBrowserShape),
        set: (value) => void reply.header("set-cookie", cookieText(knownName, value, knownBrowserMs, this.#options)),
      },
    };
  }

  async #stream(routeId: RouteId, given: unknown, request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const user = request.shown?.who.user ?? "";
    const most = await this.#options.quotas.streamsMost(user);
    if (this.#streams.size >= limits.streams) {
      throw new CarillonError("SERVER_BUSY", `this server sends ${limits.streams} streams already`, {
        hint: "Ask another one.",
      });
    }
    const theirs = this.#streamsOf(user);
    if (theirs >= most) {
      throw new CarillonError("STREAMS_TAKEN", `this server sends this user ${theirs} streams already`, {
        hint: "Close pages and programs that follow events.",
      });
    }
    const over = this.#streamed(routeId, given, request, reply);
    this.#streams.set(over, user);
    return over.finally(() => this.#streams.delete(over));
  }

  #streamsOf = (user: string) => [...this.#streams.values()].filter((one) => one === user).length;

  async #streamed(routeId: RouteId, given: unknown, request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const handle = this.#handlers[routeId] as (given: unknown, call: Call) => Promise<Events>;
    const gone = goneWith(request, this.#stopping.signal);
    try {
      const call = this.#callOf(request, reply, null, drawnByNone, gone.signal);
      // Nothing of the stream has been sent yet, so an error here is answered like that of any other request.
      const events = await handle(given, call);
      reply.hijack();
      const { raw } = reply;
      raw.writeHead(200, { ...streamHeaders(this.#options), "x-request-id": request.id });
      // Sends the headers at once: a proxy or client that waits for them would give up before the first event.
      raw.flushHeaders();
      await this.#send(events, request, raw, gone);
      return reply;
    } finally {
      gone.end();
    }
  }

  /** Sends events until they end, and a comment at intervals as a keep-alive. Ends the stream if the caller has lost access. */
  async #send(events: Events, request: FastifyRequest, raw: FastifyReply["raw"], gone: Gone): Promise<void> {
    const { clock, log } = this.#options;
    const rightsOf = (who: Principal | undefined) => JSON.stringify([who?.role, who?.grants]);
    const rights = rightsOf(request.shown?.who);
    // Ends the stream also if the caller's rights have changed or a second factor has become mandatory; a new connection is checked again.
    const goesOn = async () => {
      try {
        const shown = await this.#shown(request, false);
        return rightsOf(shown.who) === rights && !this.#factors.isLackedBy(shown);
      } catch (error) {
        if (isCarillonError(error, "SIGN_IN_NEEDED")) return false;
        throw error;
      }
    };
    const endBeat = beatLine(raw, clock, goesOn, gone.abort);
    try {
      for await (const { data, id } of events) {
        if (gone.signal.aborted) break;
        if (!raw.write(eventText(data, id)) && !raw.destroyed) await drained(raw, gone.signal);
      }
    } catch (error) {
      log.debug({ error: messageOf(error) }, "a stream of events broke off");
    } finally {
      endBeat();
      raw.end();
    }
  }
}

type Events = AsyncIterable<{ data: unknown; id?: string }>;

const isNamed = (touches: RouteShape["touches"]): boolean =>
  ["task", "calendar", "group", "key", "alarmRule", "hook"].includes(touches);

/** The reach of an unknown caller: no namespace. */
const noReach = new Reach({ role: null, grants: [], user: "nobody", token: null }, "viewer");

/** Used for a request without an idempotency key: no run ids are reserved, and `#callOf` creates the token. */
const drawnByNone = { runIds: [], token: "" };

/** Returns the key of an Idempotency-Key header. @throws REQUEST_INVALID */
function keyOf(header: string | string[]): string {
  const key = [header].flat().join(",");
  if (/^[\x21-\x7e]{1,200}$/.test(key)) return key;
  throw new CarillonError("REQUEST_INVALID", "the idempotency key is not 1 to 200 visible characters", {
    hint: "A random UUID will do.",
  });
}

/**
 * The parameters that identify a repeated request. Passwords and short secrets are left out, because they could be guessed from the stored
 * hash.
 */
const seenOf = ({ unseen = [] }: RouteShape, given: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(given).filter(([name]) => !unseen.includes(name)));

const runsOf = (routeId: RouteId, given: Record<string, unknown>): number =>
  routeId === "runTask" || routeId === "rerunRun"
    ? 1
    : routeId === "enqueueRuns"
      ? (given.runs as unknown[]).length
      : 0;

interface Gone {
  signal: AbortSignal;
  abort: () => void;
  /** Removes the listeners; called when the stream has ended. */
  end: () => void;
}

/** Returns a signal that aborts when the client's connection closes, the server stops, or `abort` is called. */
function goneWith(request: FastifyRequest, stopping: AbortSignal): Gone {
  const gone = new AbortController();
  const { socket } = request.raw;
  const onGone = () => gone.abort();
  if (socket.destroyed || stopping.aborted) onGone();
  socket.once("close", onGone);
  stopping.addEventListener("abort", onGone, { once: true });
  return {
    signal: gone.signal,
    abort: onGone,
    end: () => {
      socket.off("close", onGone);
      stopping.removeEventListener("abort", onGone);
    },
  };
}

function drained(raw: FastifyReply["raw"], signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    // A closed connection emits no further event.
    if (signal.aborted || raw.destroyed) return resolve();
    // A stream waits often, so each wait removes its listeners; otherwise they would accumulate.
    const end = () => {
      raw.off("drain", end);
      raw.off("close", end);
      signal.removeEventListener("abort", end);
      resolve();
    };
    raw.once("drain", end);
    raw.once("close", end);
    signal.addEventListener("abort", end, { once: true });
  });
}
