import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { CarillonError, messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { parseListen } from "../../settings/listen.ts";
import { checkHost } from "../guard.ts";
import { problemOf } from "../problems.ts";
import { listenFailed, listeningAt } from "./listen-failed.ts";

export interface ProbeOptions {
  /** host:port at which to listen; with port 0, any free port. */
  listen: string;
  /** True if a proxy in front of this server terminates TLS and controls access. */
  behindProxy: boolean;
  /**
   * Returns the reason why the process is not ready; null if it is ready. `server`: no Carillon server answers, so the worker may lose its
   * claims.
   */
  unready: () => "starting" | "stopping" | "server" | null;
  readMetrics: (accept?: string) => Promise<{ contentType: string; text: string }>;
  log: Log;
}

const requestMs = 10_000;
const connectionsMost = 50;

/**
 * Serves the probes and metrics of a remote worker. It requires no sign-in: such a worker has no users, and the metrics concern only this
 * process.
 */
export class ProbeServer {
  readonly #options: ProbeOptions;
  readonly #server: Server;

  constructor(options: ProbeOptions) {
    this.#options = options;
    this.#server = createServer({ requestTimeout: requestMs, headersTimeout: requestMs }, (request, response) => {
      this.#answer(request).then(
        ({ status = 200, contentType = "application/json", text }) => send(response, status, contentType, text),
        (error: unknown) => {
          const problem = problemOf(error);
          if (problem.status === 500)
            options.log.error({ error: messageOf(error), path: request.url }, "a probe failed by a bug");
          send(response, problem.status, "application/problem+json", JSON.stringify(problem));
        },
      );
    });
    this.#server.maxConnections = connectionsMost;
  }

  /** Starts to listen. @returns the address as text @throws LISTEN_FAILED */
  async start(): Promise<string> {
    const { host, port } = parseListen(this.#options.listen);
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, host, resolve);
    }).catch((error) => {
      throw listenFailed(this.#options.listen, error);
    });
    return listeningAt(host, port, this.#server.address());
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #answer({ method, url = "", headers }: IncomingMessage): Promise<Answer> {
    const { behindProxy, unready, readMetrics } = this.#options;
    if (!behindProxy) checkHost(headers.host ?? "");
    const [path = ""] = url.split("?");
    const known = ["/livez", "/readyz", "/healthz", "/metrics"].includes(path);
    if (!known || method !== "GET")
      throw new CarillonError(known ? "METHOD_UNKNOWN" : "ROUTE_UNKNOWN", `there is no ${method} ${path} of a worker`);
    if (path === "/livez") return { text: JSON.stringify({ live: true }) };
    if (path === "/metrics") return readMetrics(headers.accept);
    const why = unready();
    return { status: why === null ? 200 : 503, text: JSON.stringify({ ready: why === null, why }) };
  }
}

interface Answer {
  status?: number;
  contentType?: string;
  text: string;
}

function send(response: ServerResponse, status: number, contentType: string, text: string): void {
  response.writeHead(status, {
    "content-type": contentType,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
  });
  response.end(text);
}
