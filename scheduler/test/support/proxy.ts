import { connect, createServer, type Server, type Socket } from "node:net";
import { poolerVariable } from "./servers.ts";

/** The text in PostgreSQL's CommandComplete message after a COMMIT. */
const commitDone = Buffer.from("COMMIT\0");
/** PostgreSQL's ReadyForQuery message inside a transaction. */
const inTransaction = Buffer.from("Z\0\0\0\x05T", "latin1");

interface Pair {
  client: Socket;
  upstream: Socket;
  /** True if the proxy drops all further bytes of the pair, but leaves the connections open. */
  lost: boolean;
}

/**
 * A TCP proxy in front of a PostgreSQL that can cause faults: it cuts all connections, refuses new ones, hangs, or lets the server carry
 * out a request and loses the reply. Otherwise it passes all bytes on unchanged.
 */
export class StoreProxy {
  readonly #target: URL;
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  #refusing = false;
  #hanging = false;
  #stalled = false;
  #thenRefuses = false;
  #swallow: ((reply: Buffer) => boolean) | undefined;
  /** The number of replies lost so far. */
  swallowed = 0;
  /** The number of connections that clients have opened so far. */
  connections = 0;

  private constructor(target: string) {
    this.#target = new URL(target);
    this.#server = createServer((client) => this.#accept(client));
  }

  static async before(url: string): Promise<StoreProxy> {
    const proxy = new StoreProxy(url);
    await new Promise<void>((resolve, reject) => {
      proxy.#server.once("error", reject);
      proxy.#server.listen(0, "127.0.0.1", resolve);
    });
    return proxy;
  }

  /** The server's URL with the address of this proxy. */
  get url(): string {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the proxy does not listen");
    const url = new URL(this.#target);
    url.hostname = "127.0.0.1";
    url.port = String(address.port);
    return url.href;
  }

  /** Cuts all connections. With `refuse`, new ones are refused until `heal`. */
  cut({ refuse = false } = {}): void {
    this.#refusing = refuse;
    for (const pair of this.#pairs) this.#end(pair);
  }

  /** Passes no bytes on in either direction, but leaves the connections open, until `heal` cuts them. */
  hang(): void {
    this.#hanging = true;
    for (const { client, upstream } of this.#pairs) {
      client.pause();
      upstream.pause();
    }
  }

  /** Holds back all bytes in either direction until `flow`, as if the process on one side was suspended. */
  stall(): void {
    this.#stalled = true;
    for (const { client, upstream } of this.#pairs) {
      client.pause();
      upstream.pause();
    }
  }

  flow(): void {
    this.#stalled = false;
    for (const { client, upstream } of this.#pairs) {
      client.resume();
      upstream.resume();
    }
  }

  /** Ends a `hang` for new connections. Existing connections stay open and pass nothing on. */
  reopen(): void {
    this.#hanging = false;
    for (const pair of this.#pairs) pair.lost = true;
  }

  /** The number of open connections. */
  get open(): number {
    return this.#pairs.size;
  }

  heal(): void {
    this.#refusing = false;
    if (this.#hanging) {
      this.#hanging = false;
      this.cut();
    }
  }

  /** Loses the next reply that contains the end of a COMMIT: the proxy cuts the connection instead. */
  swallowCommit(): void {
    this.#awaitCommit();
    this.#thenRefuses = false;
  }

  #awaitCommit(): void {
    this.#swallow = (reply) => reply.includes(commitDone);
  }

  /**
   * Loses the next reply that `matching` accepts, by default a reply to a statement that returns or writes rows: the proxy cuts the
   * connection instead. If a pooler has put the statement into a transaction, the proxy loses the reply to the COMMIT instead, so
   * the statement has been carried out in either case.
   * @param matching true for a reply that is to be lost
   * @param thenRefuse if true, all connections are cut at that moment, and new ones are refused until `heal`
   */
  swallowReply(
    matching: (reply: Buffer) => boolean = (reply) =>
      /(?:INSERT|UPDATE|DELETE|SELECT) \d/.test(reply.toString("latin1")),
    { thenRefuse = false } = {},
  ): void {
    this.#thenRefuses = thenRefuse;
    this.#swallow = matching;
  }

  async close(): Promise<void> {
    this.cut({ refuse: true });
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #accept(client: Socket): void {
    this.connections++;
    if (this.#refusing) {
      client.destroy();
      return;
    }
    const upstream = connect(Number(this.#target.port || 5432), this.#target.hostname);
    const pair: Pair = { client, upstream, lost: false };
    this.#pairs.add(pair);
    client.setNoDelay(true);
    upstream.setNoDelay(true);
    client.on("data", (bytes) => {
      if (!this.#hanging && !pair.lost) upstream.write(bytes);
    });
    upstream.on("data", (bytes) => {
      const swallows = this.#swallow?.(bytes) ?? false;
      const isEarly = swallows && process.env[poolerVariable] !== undefined && bytes.includes(inTransaction);
      if (isEarly) this.#awaitCommit();
      if (swallows && !isEarly) {
        this.#swallow = undefined;
        this.swallowed++;
        if (this.#thenRefuses) this.cut({ refuse: true });
        else this.#end(pair);
      } else if (!this.#hanging && !pair.lost) client.write(bytes);
    });
    for (const socket of [client, upstream]) {
      // The end of one connection of the pair ends the other.
      socket.on("error", () => this.#end(pair));
      socket.on("close", () => this.#end(pair));
      if (this.#stalled) socket.pause();
    }
  }

  #end(pair: Pair): void {
    this.#pairs.delete(pair);
    pair.client.destroy();
    pair.upstream.destroy();
  }
}
