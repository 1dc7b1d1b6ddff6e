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
import type { ServedSettings } from "../settings/served.ts";
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
import { urlTokenOf } from "./sign-in/url-token.ts";
import { unpack } from "./unpacked.ts";
import { type InexactPlaces, inexactItems } from "./workers/inexact-parts.ts";
import { Keys } from "./workers/keys.ts";
import { Poller, type PollerOptions } from "./workers/poller.ts";

export interface HttpOptions extends Omit<PollerOptions, "quotas">, ServedSettings {
  /** The keys that encrypt and decrypt tasks' secrets. */
  secretKeys: SecretKeys;
  alarms: AlarmSettings | null;
  /** host:port at which to listen; with port 0, any free port. */
  listen: string;
  /** True if a proxy in front of the server terminates TLS. */
  behindProxy: boolean;
  /** Addresses and networks of proxies whose `X-Forwarded-…` headers are trusted. */
  trustedProxies: readonly string[];
  provider: ProviderSettings | null;
  signIns: SignInSettings;
  /** The password of the first user, or "file:PATH"; null if not configured. */
  adminPassword: string | null;
  /** The path of a sorted file with hashes of breached passwords; null if not configured. */
  breachedPasswords: string | null;
  /** Returns metrics for Prometheus. The route requires a sign-in or a token with the role viewer. */
  readMetrics?: (accept?: string) => Promise<{ contentType: string; text: string }>;
  /** Executes a query during the start, and repeats it until the store answers; with `failFast`, executes it once. */
  untilAnswered: UntilAnswered;
  /** Returns the reason why the node should get no new requests; null if it is ready. */
  unready: () => "stopping" | "store" | null;
  /** The name of this node. */
  node: string;
  /** This process's enqueuer, which inserts runs. */
  enqueuer: Pick<Enqueuer, "add">;
  /** undefined if this process does not trace. */
  tracing: EnqueueTracing | undefined;
}

declare module "fastify" {
  interface FastifyContextConfig {
    /** The policy that decides who may call the route. If a route has none, the server does not start, because that is a defect. */
    policy?: Policy;
    /** The kind of data that the route concerns, for access by namespace. Also required on every route. */
    touches?: Touches;
  }
  interface FastifyRequest {
    workerKey: WorkerKey | null;
    /** The numbers in a worker's poll that JavaScript cannot represent exactly. */
    inexact: InexactPlaces | null;
    /** The request's caller; null if the route requires none. */
    shown: Shown | null;
  }
}

/** Answers to workers and metrics with fewer bytes are not compressed, because that would cost more than it saves. */
const packFromBytes = 1_024;
const packing = { encodings: ["gzip" as const], threshold: packFromBytes, zlibOptions: { level: 1 } };
/**
 * Time limits in ms for receiving a whole request and its header, checked every `lookMs`, so that a slow request cannot occupy a connection
 * indefinitely. The interval is short so that one check closes few connections: closing thousands at once would delay slots.
 */
const arrival = { requestMs: 30_000, headMs: 10_000, lookMs: 100 };
/**
 * A connection without data for this long, in ms, is closed, for example because the client does not read the answer. Polls and streams
 * send data at shorter intervals.
 */
const silentMs = 120_000;
/**
 * Refusals that are recorded in the security log: those caused by the caller's identity or the request's origin. A 401 is
 * recorded only if the request had a token, or was one of an incoming webhook.
 */
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
    "HOOK_REFUSED",
  ] as const),
]);
/** The maximum length of a name in a URL: each character may have four UTF-8 bytes, and each byte is written as %XX. */
const nameBytes = limits.taskNameLength * 4 * 3;

/** The HTTP server of a node: the API, the workers' polls, the console, probes and metrics. */
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
    this.#console = new ConsolePages(options);
    const isBusy = (socket: Socket) => this.#inFlight.isBusy(socket);
    this.#connections = new Connections(connectionsMost(), isBusy, options.clock, options.log);
    this.#app = fastify({
      bodyLimit: limits.pollBytes,
      requestTimeout: arrival.requestMs,
      http: { headersTimeout: arrival.headMs, connectionsCheckingInterval: arrival.lookMs },
      connectionTimeout: silentMs,
      routerOptions: { maxParamLength: nameBytes },
      // Handles a path that is too long or malformed. Fastify refuses it before it selects a route, so the error handler below is not
      // called.
      frameworkErrors: (error, request, reply) => {
        const problem = problemOf(asCarillonError(error));
        // Fastify's type of `reply` does not fit here, because no route has been selected.
        const answer = reply as unknown as FastifyReply;
        answer.header("x-request-id", request.id).code(problem.status).type("application/problem+json").send(problem);
      },
      // A client's own request id is used in the logs and in the answer, so that a request can be found in both.
      genReqId: ({ headers }) => requestIdOf(headers["x-request-id"]) ?? randomUUID(),
      forceCloseConnections: "idle",
      // Fastify walks back through X-Forwarded-For while the addresses are those of trusted proxies. Entries further back are not trusted,
      // because a client can write any.
      trustProxy: options.behindProxy && [...options.trustedProxies],
      ...withoutBase(options.basePath),
    });
  }

  /**
   * Starts to listen; creates the first user if there is none.
   * @returns the address as text
   * @throws LISTEN_FAILED, FILE_INVALID, OPTION_INVALID; errors of `makeFirstUser`
   */
  async start(): Promise<string> {
    await this.#breached?.check();
    const app = this.#app;
    const { store, storeClock, log, untilAnswered, adminPassword } = this.#options;
    // A generated password is written only to a terminal, not to a log file.
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
    // This hook runs for every request, so it uses a callback: a promise would cost more than the hook's work.
    app.addHook("onRequest", ({ host, id }, reply, done) => {
      reply.header("x-request-id", id);
      strictHeaders(reply, this.#options);
      if (!this.#options.behindProxy) checkHost(host);
      done();
    });
    // The worker key is checked before the body is read, so that the server reads no body from a caller without a valid key.
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
          { error: messageOf(error), path: request.url.split("?")[0], request: request.id },
          "a request failed by a bug",
        );
      if (isCarillonError(known)) this.#tellRefusal(known.code, request);
      if (problem.status === 401) reply.header("www-authenticate", "Bearer");
      if (known instanceof CarillonError && known.retryAfterMs !== undefined)
        reply.header("retry-after", String(Math.max(1, Math.ceil(known.retryAfterMs / 1_000))));
      return reply.code(problem.status).type("application/problem+json").send(problem);
    });
    app.setNotFoundHandler((request, reply) => {
      if (this.#console.isPage(request)) return this.#console.page(request, reply);
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
      app.get("/metrics", forScrapers, async (request, reply) => {
        const { contentType, text } = await readMetrics(request.headers.accept);
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

  /** Registers the routes for health checks by supervisors and load balancers. They need no sign-in and no query of the store. */
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
   * Stops the server. Answers the waiting polls, so that their workers poll another server. If that takes too long, for example because the
   * store is unreachable, the connections are closed.
   * @param withinMs the time limit for all requests in progress, in ms
   */
  async stop(withinMs: number): Promise<void> {
    const { clock } = this.#options;
    const beganMono = clock.monotonic();
    await settlesWithin(clock, withinMs / 2, Promise.all([this.#poller.close(), this.#api.stop()]));
    await this.#inFlight.close(this.#app, clock, Math.max(0, beganMono + withinMs - clock.monotonic()));
    this.#security.close();
    this.#connections.close();
  }

  /** Records a refusal in the security log. Wrong passwords are recorded where they are checked, because the user is known there. */
  #tellRefusal(code: ErrorCode, request: FastifyRequest): void {
    const { headers, id, ip, method, routeOptions, shown, workerKey } = request;
    // A 401 without a token is not recorded: it comes from a browser that has not signed in or whose sign-in has ended.
    const guesses = headers.authorization !== undefined || urlTokenOf(request) !== undefined;
    if (!refusalsTold.has(code) || (statusOf(code) === 401 && !guesses && code !== "HOOK_REFUSED")) return;
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
    // For joining and for secrets, the key is read from the store again, because another server may just have revoked it.
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
      // A session also ends when its key is revoked. The worker then gets the key's error, because joining again would fail.
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

/** Removes the base path from the URLs of requests before their routes are looked up. A proxy may have removed it already. */
function withoutBase(basePath: string): { rewriteUrl?: (request: { url?: string }) => string } {
  if (basePath === "") return {};
  const rewriteUrl = ({ url = "/" }: { url?: string }) => {
    const rest = url.startsWith(basePath) ? url.slice(basePath.length) : url;
    if (rest === url || !/^(?:[/?]|$)/.test(rest)) return url;
    return rest.startsWith("/") ? rest : `/${rest}`;
  };
  return { rewriteUrl };
}

/** The request id sent by the client, if it is suitable for logs; otherwise undefined. */
function requestIdOf(header: string | string[] | undefined): string | undefined {
  return typeof header === "string" && /^[\x21-\x7e]{1,128}$/.test(header) ? header : undefined;
}

function checked(body: unknown): PollRequest {
  const parsed = pollRequest.safeParse(body);
  if (parsed.success) return parsed.data;
  const told = issuesText(parsed.error.issues);
  throw new CarillonError("REQUEST_INVALID", `the request is not what the contract says: ${told}`, {
    hint: `See docs/reference/worker-protocol.md, or GET ${pollPath}/contract.`,
  });
}
