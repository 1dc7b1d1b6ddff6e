import { randomUUID } from "node:crypto";
import type { Socket } from "node:net";
import compress from "@fastify/compress";
import fastify, {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type RouteHandlerMethod,
} from "fastify";
import { type Policy, principalText, type Touches } from "../access/access.ts";
import { type PasswordCheck, passwordCheck } from "../access/password.ts";
import type { SecretKeys } from "../access/secrets/secret-keys.ts";
import type { WorkerKey } from "../access/worker-store.ts";
import { issuesText } from "../api/issues.ts";
import { methodsAt } from "../api/methods-at.ts";
import { statusOf } from "../api/problem-status.ts";
import { describeProtocol, type PollRequest, pollPath, pollRequest } from "../api/worker-protocol.ts";
import { settlesWithin } from "../base/clock.ts";
import { CarillonError, type ErrorCode, isCarillonError, messageOf } from "../base/errors.ts";
import { limits } from "../base/limits.ts";
import type { UntilAnswered } from "../base/until-answered.ts";
import { version } from "../base/version.ts";
import type { Signal } from "../cluster/signal-store.ts";
import type { AlarmSettings } from "../settings/alarms/alarms.ts";
import { parseListen } from "../settings/listen.ts";
import type { ProviderSettings } from "../settings/provider.ts";
import type { SignInSettings } from "../settings/settings.ts";
import type { Enqueuer } from "../store/enqueuer.ts";
import { type EnqueueTracing, tracesHeader } from "../store/trace-context.ts";
import { Api, type Shown } from "./api.ts";
import { Connections, connectionsMost } from "./connections.ts";
import { ConsolePages } from "./console-pages.ts";
import { checkHost, strictHeaders } from "./guard.ts";
import { InFlight } from "./in-flight.ts";
import { refuseOddBodies } from "./json-bodies.ts";
import { listenFailed, listeningAt } from "./probes/listen-failed.ts";
import { asCarillonError, problemOf } from "./problems.ts";
import { Quotas } from "./quotas.ts";
import { BreachedPasswords } from "./sign-in/breached-passwords.ts";
import { makeFirstUser } from "./sign-in/first-user.ts";
import { SecurityLog } from "./sign-in/security-log.ts";
import { unpack } from "./unpacked.ts";
import { type InexactPlaces, inexactItems } from "./workers/inexact-parts.ts";
import { Keys } from "./workers/keys.ts";
import { Poller, type PollerOptions } from "./workers/poller.ts";

export interface HttpOptions extends Omit<PollerOptions, "quotas"> {
  /** The keys that seal and open tasks' secrets. */
  secretKeys: SecretKeys;
  alarms: AlarmSettings | null;
  /** host:port; port 0 takes a free one. */
  listen: string;
  /** True if a proxy in front of the server terminates TLS. */
  behindProxy: boolean;
  /** Addresses and networks whose `X-Forwarded-…` headers count if the server is behind a proxy. */
  trustedProxies: readonly string[];
  provider: ProviderSettings | null;
  signIns: SignInSettings;
  /** The password of the first user, or "file:PATH". */
  adminPassword: string | null;
  /** The path of a sorted file of hashes of breached passwords. */
  breachedPasswords: string | null;
  /** Metrics for Prometheus. A scraper needs a key or a token, like any caller. */
  readMetrics?: () => Promise<{ contentType: string; text: string }>;
  /** Runs the queries of the start, and repeats them until the store answers (only once with `failFast`). */
  untilAnswered: UntilAnswered;
  /** The reason for which the node should get no new requests; null if it is ready. */
  unready: () => "stopping" | "store" | null;
  /** The name of this node. */
  node: string;
  /** The enqueuer of this process. */
  enqueuer: Pick<Enqueuer, "add">;
  /** Absent if this process does not trace. */
  tracing: EnqueueTracing | undefined;
}

declare module "fastify" {
  interface FastifyContextConfig {
    /** The policy that admits callers to the route. A route without one is a bug, which the start reports. */
    policy?: Policy;
    /** The namespaces that the route concerns. A route without this is likewise a bug. */
    touches?: Touches;
  }
  interface FastifyRequest {
    workerKey: WorkerKey | null;
    /** Numbers in a worker's poll that JavaScript cannot hold exactly. */
    inexact: InexactPlaces | null;
    /** The caller of the request, if its route requires one. */
    shown: Shown | null;
  }
}

/** Packing a smaller answer costs more than it saves. */
const packFromBytes = 1_024;
const packing = { encodings: ["gzip" as const], threshold: packFromBytes, zlibOptions: { level: 1 } };
/**
 * Deadlines for a whole request and for its head, checked every `lookMs`, so that a request that trickles in cannot hold a connection for
 * ever. The check is frequent, so that each check closes few connections: with 2 s, a flood of 2,000 connections per second delayed slots
 * by 190 ms each time.
 */
const arrival = { requestMs: 30_000, headMs: 10_000, lookMs: 100 };
/**
 * The server closes a connection that carries no data for this long, such as one whose client reads no answer. Polls and streams send data
 * sooner.
 */
const silentMs = 120_000;
/** Refusals that the security log records: their cause is the caller's identity or the origin of the request. */
const refusalsTold: ReadonlySet<ErrorCode> = new Set([
  ...(["KEY_UNKNOWN", "KEY_FORBIDDEN", "KEY_THROTTLED"] as const),
  ...([
    "SIGN_IN_NEEDED",
    "TOO_MANY_ATTEMPTS",
    "ACCESS_DENIED",
    "PASSWORD_TEMPORARY",
    "SECOND_FACTOR_REQUIRED",
    "SECRET_FORBIDDEN",
    "ORIGIN_REFUSED",
    "HOST_REFUSED",
  ] as const),
]);
/** The longest name in a URL: each character as four UTF-8 bytes, and each byte as %XX. */
const nameBytes = limits.taskNameLength * 4 * 3;

/** The server's HTTP side. */
export class HttpServer {
  readonly #options: HttpOptions;
  readonly #poller: Poller;
  readonly #keys: Keys;
  readonly #security: SecurityLog;
  readonly #breached: BreachedPasswords | null;
  readonly #checkPassword: PasswordCheck;
  readonly #api: Api;
  readonly #app: FastifyInstance;
  readonly #console: ConsolePages;
  readonly #inFlight = new InFlight();
  readonly #connections: Connections;

  constructor(options: HttpOptions) {
    this.#options = options;
    const quotas = new Quotas(options.store.quotas, options.clock);
    this.#poller = new Poller({ ...options, quotas });
    this.#keys = new Keys(options.store.workers, options.clock, options.log, () => options.storeClock.now());
    this.#security = new SecurityLog(options.clock, options.log);
    this.#breached = options.breachedPasswords === null ? null : new BreachedPasswords(options.breachedPasswords);
    this.#checkPassword = passwordCheck(this.#breached);
    this.#api = new Api({
      ...options,
      quotas,
      security: this.#security,
      checkPassword: this.#checkPassword,
      onKeyRevoked: (keyId) => this.#keyRevoked(keyId),
    });
    this.#console = new ConsolePages();
    const isBusy = (socket: Socket) => this.#inFlight.isBusy(socket);
    this.#connections = new Connections(connectionsMost(), isBusy, options.clock, options.log);
    this.#app = fastify({
      bodyLimit: limits.pollBytes,
      requestTimeout: arrival.requestMs,
      http: { headersTimeout: arrival.headMs, connectionsCheckingInterval: arrival.lookMs },
      connectionTimeout: silentMs,
      routerOptions: { maxParamLength: nameBytes },
      // A path that is too long or malformed is refused before a route, and thus a route's error handler, is found.
      frameworkErrors: (error, request, reply) => {
        const problem = problemOf(asCarillonError(error));
        // The reply type has no schema at this point.
        const answer = reply as unknown as FastifyReply;
        answer.header("x-request-id", request.id).code(problem.status).type("application/problem+json").send(problem);
      },
      // A request id from the caller goes into the logs and the answer, so that it can be searched for in both.
      genReqId: ({ headers }) => requestIdOf(headers["x-request-id"]) ?? randomUUID(),
      forceCloseConnections: "idle",
      // Counts hops from the nearest one back, as long as they are the operator's proxies. Addresses that the client itself wrote before
      // them are not trusted.
      trustProxy: options.behindProxy && [...options.trustedProxies],
    });
  }

  /** @returns the address that it listens on, as text @throws LISTEN_FAILED, FILE_INVALID */
  async start(): Promise<string> {
    await this.#breached?.check();
    const app = this.#app;
    const { store, storeClock, log, untilAnswered, adminPassword } = this.#options;
    // The text is written only to a terminal, where a person reads it.
    const terminal = process.stderr.isTTY ? (text: string) => void process.stderr.write(text) : null;
    const nowMs = storeClock.now();
    await makeFirstUser({
      store: store.access,
      nowMs,
      log,
      untilAnswered,
      given: adminPassword,
      checkPassword: this.#checkPassword,
      terminal,
    });
    const { host, port } = parseListen(this.#options.listen);
    app.addHook("onRoute", ({ config, url, method }) => {
      if (!config?.policy || !config.touches)
        throw new Error(`the route ${method} ${url} does not say who may use it, or which namespaces it is about`);
    });
    this.#inFlight.watch(app);
    app.server.on("connection", (socket) => this.#connections.add(socket));
    app.decorateRequest("workerKey", null);
    app.decorateRequest("shown", null);
    // These hooks run for every request, so they use callbacks: a promise for each request would cost more than the hook's work.
    app.addHook("onRequest", ({ host, id }, reply, done) => {
      reply.header("x-request-id", id);
      strictHeaders(reply, this.#options.behindProxy);
      if (!this.#options.behindProxy) checkHost(host);
      done();
    });
    // Runs before the body is read: the server reads no body of a caller without a valid key.
    const onRequest = async (request: FastifyRequest) => {
      request.workerKey = await this.#keys.of(request.headers.authorization, request.ip);
    };
    app.removeContentTypeParser("text/plain");
    refuseOddBodies(app);
    await app.register(compress, { global: false });
    app.setErrorHandler((error, request, reply) => {
      const known = asCarillonError(error);
      const problem = problemOf(known);
      if (problem.status === 500)
        this.#options.log.error(
          { error: messageOf(error), path: request.url, request: request.id },
          "a request failed by a bug",
        );
      if (isCarillonError(known)) this.#tellRefusal(known.code, request);
      if (problem.status === 401) reply.header("www-authenticate", "Bearer");
      if (known instanceof CarillonError && known.retryAfterMs !== undefined)
        reply.header("retry-after", String(Math.max(1, Math.ceil(known.retryAfterMs / 1_000))));
      return reply.code(problem.status).type("application/problem+json").send(problem);
    });
    app.setNotFoundHandler((request, reply) => {
      if (this.#console.isPage(request)) return this.#console.page(reply);
      const [path = ""] = request.url.split("?");
      const methods = methodsAt(path);
      if (methods.length > 0) reply.header("allow", methods.join(", "));
      const code = methods.length > 0 ? "METHOD_UNKNOWN" : "ROUTE_UNKNOWN";
      const problem = problemOf(new CarillonError(code, `there is no ${request.method} ${path}`));
      return reply.code(problem.status).type("application/problem+json").send(problem);
    });
    const forWorkers = {
      config: { policy: "worker" as const, touches: "nothing" as const },
      onRequest,
      compress: packing,
      preParsing: unpack,
    };
    app.post(pollPath, forWorkers, (request) => this.#poll(request));
    app.get(`${pollPath}/contract`, forWorkers, () => describeProtocol(version));
    this.#api.register(app);
    await this.#api.registerProvider(app);
    this.#answerProbes(app);
    await this.#console.register(app);
    const { readMetrics } = this.#options;
    if (readMetrics) {
      const needs = { policy: "viewer", touches: "cluster" } as const;
      const forScrapers = {
        compress: packing,
        config: needs,
        onRequest: async (request: FastifyRequest) =>
          void (await this.#api.admit(request, { ...needs, noun: "cluster", method: "GET" })),
      };
      app.get("/metrics", forScrapers, async (_request, reply) => {
        const { contentType, text } = await readMetrics();
        return reply.type(contentType).send(text);
      });
    }
    try {
      await app.listen({ host, port });
    } catch (error) {
      throw listenFailed(this.#options.listen, error);
    }
    return listeningAt(host, port, app.server.address());
  }

  /** For process managers and load balancers. The answer gives only the state, and costs no query of the store. */
  #answerProbes(app: FastifyInstance): void {
    const anyone = { config: { policy: "anyone" as const, touches: "nothing" as const } };
    const ready: RouteHandlerMethod = (_, reply) => {
      const why = this.#options.unready();
      return reply.code(why === null ? 200 : 503).send({ ready: why === null, why });
    };
    app.get("/livez", anyone, (_, reply) => reply.send({ live: true }));
    app.get("/readyz", anyone, ready);
    app.get("/healthz", anyone, ready);
  }

  onSignal(signal: Signal): void {
    if (signal.kind === "revoked") this.#keyRevoked(signal.keyId);
    this.#poller.onSignal(signal);
    this.#api.onSignal(signal);
  }

  /**
   * Answers the waiting polls, so that their workers poll another server. If that takes longer than `withinMs`, for instance because the
   * store is away, the workers' connections are closed.
   * @param withinMs the time limit for answers under way, in milliseconds
   */
  async stop(withinMs: number): Promise<void> {
    const { clock } = this.#options;
    const beganMono = clock.monotonic();
    await settlesWithin(clock, withinMs / 2, Promise.all([this.#poller.close(), this.#api.stop()]));
    await this.#inFlight.close(this.#app, clock, Math.max(0, beganMono + withinMs - clock.monotonic()));
    this.#security.close();
    this.#connections.close();
  }

  /** Wrong passwords are logged where the sign-in is judged, because the user is known there. */
  #tellRefusal(code: ErrorCode, { headers, id, ip, method, routeOptions, shown, workerKey }: FastifyRequest): void {
    // A browser that has not signed in yet sends no credentials. A browser whose sign-in has ended sends credentials that were valid once.
    const guesses = headers.authorization !== undefined;
    if (!refusalsTold.has(code) || (statusOf(code) === 401 && !guesses)) return;
    const user = shown ? principalText(shown.who) : workerKey?.name;
    this.#security.refused(code, {
      address: ip,
      request: id,
      ...(user === undefined ? {} : { user }),
      route: `${method} ${routeOptions.url ?? ""}`,
    });
  }

  async #poll(request: FastifyRequest): Promise<unknown> {
    const body = checked(request.body);
    // A worker that joins or asks for a secret may use a key that was revoked a moment ago, on this or another server: check the store.
    const key =
      body.join || body.secretOf
        ? await this.#keys.of(request.headers.authorization, request.ip, true)
        : request.workerKey;
    const gone = new AbortController();
    const { socket } = request.raw;
    const onClose = () => gone.abort();
    socket.once("close", onClose);
    try {
      const traces = request.headers[tracesHeader] !== undefined;
      const inexact = request.inexact ? inexactItems(request.inexact, body) : undefined;
      return await this.#poller.poll(key as WorkerKey, body, gone.signal, { traces, inexact });
    } catch (error) {
      // A session also ends when its key is revoked. Joining again would be useless then, so the caller gets the key's error.
      if (isCarillonError(error, "SESSION_LOST")) await this.#keys.of(request.headers.authorization, request.ip, true);
      throw error;
    } finally {
      socket.off("close", onClose);
    }
  }

  #keyRevoked(keyId: number): void {
    this.#keys.forget(keyId);
    this.#poller.endSessionsOf(keyId);
  }
}

/** A caller's own id of its request, if it is fit for a log. */
function requestIdOf(header: string | string[] | undefined): string | undefined {
  return typeof header === "string" && /^[\x21-\x7e]{1,128}$/.test(header) ? header : undefined;
}

function checked(body: unknown): PollRequest {
  const parsed = pollRequest.safeParse(body);
  if (parsed.success) return parsed.data;
  const told = issuesText(parsed.error.issues);
  throw new CarillonError("REQUEST_INVALID", `the request is not what the contract says: ${told}`, {
    hint: `See docs/worker-protocol.md, or GET ${pollPath}/contract.`,
  });
}
