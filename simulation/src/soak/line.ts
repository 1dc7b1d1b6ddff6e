import { connect, createServer, type Server, type Socket } from "node:net";

/** A TCP proxy between one process and the store, which can cut or silence the connections. It does not parse the protocol. */
export class Line {
  readonly #server: Server;
  readonly #target: URL;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  #state: "open" | "cut" | "silent" = "open";

  private constructor(target: string) {
    this.#target = new URL(target);
    this.#server = createServer((client) => this.#accept(client));
  }

  static async before(target: string): Promise<Line> {
    const line = new Line(target);
    await new Promise<void>((resolve, reject) => {
      line.#server.once("error", reject);
      line.#server.listen(0, "127.0.0.1", resolve);
    });
    return line;
  }

  get url(): string {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the line does not listen");
    const url = new URL(this.#target);
    url.host = `127.0.0.1:${address.port}`;
    return url.href;
  }

  /** Ends all connections at once and refuses new ones. */
  cut(): void {
    this.#state = "cut";
    for (const pair of this.#pairs) this.#end(pair);
  }

  /** Stops forwarding bytes without ending the connections. */
  silence(): void {
    this.#state = "silent";
    for (const pair of this.#pairs) for (const socket of pair) socket.pause();
  }

  /** Forwards again. Silenced connections end first, because bytes of theirs may have been lost. */
  heal(): void {
    if (this.#state === "silent") for (const pair of this.#pairs) this.#end(pair);
    this.#state = "open";
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #accept(client: Socket): void {
    if (this.#state === "cut") {
      client.destroy();
      return;
    }
    const upstream = connect(Number(this.#target.port), this.#target.hostname);
    const pair = [client, upstream] as const;
    this.#pairs.add(pair);
    client.pipe(upstream, { end: false });
    upstream.pipe(client, { end: false });
    for (const socket of pair) {
      socket.setNoDelay(true);
      // When one socket of a pair fails or closes, the other one is closed too.
      socket.on("error", () => this.#end(pair));
      socket.on("close", () => this.#end(pair));
      if (this.#state === "silent") socket.pause();
    }
  }

  #end(pair: readonly [Socket, Socket]): void {
    this.#pairs.delete(pair);
    for (const socket of pair) socket.destroy();
  }
}
