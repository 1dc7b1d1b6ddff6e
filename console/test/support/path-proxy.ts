import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/**
 * A reverse proxy on this machine that serves a Carillon server at a path, and another application at all other paths of the same host. It
 * passes the browser's `Host` on, as a proxy in production has to.
 */
export class PathProxy {
  readonly #path: string;
  /** True if the proxy removes the path from the requests that it passes on. */
  readonly #removes: boolean;
  readonly #server: Server = createServer((request, response) => this.#answer(request, response));
  /** The port of the Carillon server. */
  target = 0;
  /** The HTML of the other application. */
  page = "another application";
  /** The requests that the other application got: their paths, and the names of their cookies. */
  readonly others: { path: string; cookies: string[] }[] = [];

  constructor(path: string, { removes = false }: { removes?: boolean } = {}) {
    this.#path = path;
    this.#removes = removes;
  }

  /** Starts to listen. @returns the origin */
  async open(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  #answer(asked: IncomingMessage, response: ServerResponse): void {
    const { url = "", method, headers } = asked;
    const rest = url.slice(this.#path.length);
    if (!url.startsWith(this.#path) || !/^(?:[/?]|$)/.test(rest)) {
      const cookies = (headers.cookie ?? "").split(/; */).filter((one) => one !== "");
      this.others.push({ path: url, cookies: cookies.map((one) => one.split("=")[0] as string) });
      response.writeHead(200, { "content-type": "text/html" }).end(this.page);
      return;
    }
    const path = this.#removes ? (rest.startsWith("/") ? rest : `/${rest}`) : url;
    const passed = request({ host: "127.0.0.1", port: this.target, path, method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      response.flushHeaders();
      answer.pipe(response);
    });
    passed.on("error", () => response.destroy());
    response.on("close", () => passed.destroy());
    asked.pipe(passed);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
