import { connect, createServer, type Server, type Socket } from "node:net";

/** A TCP proxy between one process and one server that can simulate two kinds of network failure. It does not parse the data. */
export class FaultProxy {
  readonly #server: Server;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  #target: URL;
  #state: "open" | "refusing" | "silent" = "open";

  private constructor(target: string) {
    this.#target = new URL(target);
    this.#server = createServer((client) => this.#accept(client));
  }

  /** Starts a proxy. @param target any URL with host and port */
  static async before(target: string): Promise<FaultProxy> {
    const proxy = new FaultProxy(target);
    await new Promise<void>((resolve, reject) => {
      proxy.#server.once("error", reject);
      proxy.#server.listen(0, "127.0.0.1", resolve);
    });
    return proxy;
  }

  /** The target's URL with the host and port of this proxy. */
  get url(): string {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the proxy does not listen");
    const url = new URL(this.#target);
    url.host = `127.0.0.1:${address.port}`;
    return url.href;
  }

  /** Connects clients that arrive from now on to another server. */
  retarget(target: string): void {
    this.#target = new URL(target);
  }

  /** Ends every connection at once and refuses new ones. */
  refuse(): void {
    this.#state = "refusing";
    this.#endAll();
  }

  /** Forwards no byte and ends no connection, like a network that drops everything. New connections are accepted but silent too. */
  silence(): void {
    this.#state = "silent";
    for (const pair of this.#pairs) for (const socket of pair) socket.pause();
  }

  /** Ends a simulated failure. Silent connections are closed, because part of their data may be missing. */
  heal(): void {
    if (this.#state === "silent") this.#endAll();
    this.#state = "open";
  }

  async close(): Promise<void> {
    this.refuse();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #accept(client: Socket): void {
    if (this.#state === "refusing") {
      client.destroy();
      return;
    }
    const upstream = connect(Number(this.#target.port), this.#target.hostname);
    const pair = [client, upstream] as const;
    this.#pairs.add(pair);
    client.on("data", (bytes) => upstream.write(bytes));
    upstream.on("data", (bytes) => client.write(bytes));
    for (const socket of pair) {
      socket.setNoDelay(true);
      // If either side ends, both connections of the pair end.
      socket.on("error", () => this.#end(pair));
      socket.on("close", () => this.#end(pair));
      if (this.#state === "silent") socket.pause();
    }
  }

  #endAll(): void {
    for (const pair of this.#pairs) this.#end(pair);
  }

  #end(pair: readonly [Socket, Socket]): void {
    this.#pairs.delete(pair);
    for (const socket of pair) socket.destroy();
  }
}
