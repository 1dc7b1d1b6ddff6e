import { connect, createServer, type Server, type Socket } from "node:net";
import { poolerVariable } from "./servers.ts";

/** The byte that begins PostgreSQL's CommandComplete and the tag that ends a transaction. */
const commitDone = Buffer.from("COMMIT\0");
/** ReadyForQuery inside a transaction. */
const inTransaction = Buffer.from("Z\0\0\0\x05T", "latin1");

interface Pair {
  client: Socket;
  upstream: Socket;
  /** True once the pair's bytes are dropped, for ever. */
  lost: boolean;
}

/**
 * A TCP proxy in front of a PostgreSQL that can cause faults: cut every connection, refuse new ones, hang, or let a request be carried out
 * and swallow the reply. It changes nothing in the protocol.
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
  /** Replies swallowed so far. */
  swallowed = 0;
  /** The number of connections requested so far. */
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

  /** The server's URL through this proxy. */
  get url(): string {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the proxy does not listen");
    const url = new URL(this.#target);
    url.hostname = "127.0.0.1";
    url.port = String(address.port);
    return url.href;
  }

  /** Cuts all connections; with `refuse`, also new ones, until `heal`. */
  cut({ refuse = false } = {}): void {
    this.#refusing = refuse;
    for (const pair of this.#pairs) this.#end(pair);
  }

  /** Bytes in either direction are dropped, and no connection ends, until `heal` cuts them. */
  hang(): void {
    this.#hanging = true;
    for (const { client, upstream } of this.#pairs) {
      client.pause();
      upstream.pause();
    }
  }

  /** Bytes wait in either direction until `flow`, when all of them arrive: as if one side's process had been stopped. */
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

  /** Ends a `hang` for future connections. Existing ones stay as they are: no byte, and no end. */
  reopen(): void {
    this.#hanging = false;
    for (const pair of this.#pairs) pair.lost = true;
  }

  /** Connections that are open. */
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

  /** The next reply that holds the end of a COMMIT never arrives: its connection is cut instead. */
  swallowCommit(): void {
    this.#awaitCommit();
    this.#thenRefuses = false;
  }

  #awaitCommit(): void {
    this.#swallow = (reply) => reply.includes(commitDone);
  }

  /**
   * The next reply to a statement that returns or writes rows never arrives: its connection is cut instead. Through a pooler each statement
   * is a transaction; then the reply to its commit is lost, so that it was carried out.
   * @param thenRefuse all connections are cut with it, and none comes, until `heal`
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
      // If either side ends, both connections of the pair end.
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
