import { connect, createServer, type Server, type Socket } from "node:net";
import { Lane } from "./lane.ts";

export type Direction = "both" | "toServer" | "toClient";

export interface Pair {
  readonly client: Socket;
  readonly upstream: Socket;
  readonly toServer: Lane;
  readonly toClient: Lane;
}

/** Returns how many bytes of a frame, or of a chunk, are forwarded; see Lane. */
export type Passing = (pair: Pair, bytes: Buffer | undefined) => number;

/** Forwards everything. */
export const all = () => Number.POSITIVE_INFINITY;

/** A TCP proxy in front of one server. Its faults can be switched on and off. It never changes the bytes that it forwards. */
export class TcpProxy {
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  readonly #framed: boolean;
  #target: { host: string; port: number };
  #refusing = false;
  #paused = { toServer: false, toClient: false };
  #delayMs = { toServer: 0, toClient: 0 };
  #bytesPerSecond = Number.POSITIVE_INFINITY;
  /** Functions that decide how many bytes of each request and of each reply are forwarded. */
  onRequest: Passing = all;
  onReply: Passing = all;
  /** Number of connections accepted so far. */
  accepted = 0;

  /** @param framed true: `Passing` is called for each ZooKeeper frame; false: for each chunk */
  protected constructor(target: string, framed: boolean) {
    this.#target = parse(target);
    this.#framed = framed;
    this.#server = createServer((client) => this.#accept(client));
  }

  /** Starts a proxy. @param target `host:port` of the server */
  static async before(target: string): Promise<TcpProxy> {
    const proxy = new TcpProxy(target, false);
    await proxy.listen();
    return proxy;
  }

  protected async listen(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(0, "127.0.0.1", resolve);
    });
  }

  /** `host:port` of the proxy, for clients. */
  get address(): string {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the proxy does not listen");
    return `127.0.0.1:${address.port}`;
  }

  /** Number of connections that are open now. */
  get open(): number {
    return this.#pairs.size;
  }

  /** Makes the proxy connect later clients to another server. */
  retarget(target: string): void {
    this.#target = parse(target);
  }

  /**
   * Simulates a network that hangs: the proxy holds all bytes in this direction, and no connection ends. New connections are accepted and
   * held too.
   */
  pause(direction: Direction = "both"): void {
    this.#setPaused(direction, true);
  }

  /** Ends the pause and forwards the held bytes in order. */
  resume(direction: Direction = "both"): void {
    this.#setPaused(direction, false);
  }

  #setPaused(direction: Direction, paused: boolean): void {
    for (const lane of lanesOf(direction)) {
      this.#paused[lane] = paused;
      for (const pair of this.#pairs) pair[lane].pause(paused);
    }
  }

  /** Delays the bytes of existing and new connections by `ms`; 0 ends the delay. */
  delay(ms: number, direction: Direction = "both"): void {
    for (const lane of lanesOf(direction)) {
      this.#delayMs[lane] = ms;
      for (const pair of this.#pairs) pair[lane].delayMs = ms;
    }
  }

  /** Limits each direction of each connection to this rate; Infinity ends the limit. */
  throttle(bytesPerSecond: number): void {
    this.#bytesPerSecond = bytesPerSecond;
    for (const { toServer, toClient } of this.#pairs) {
      for (const lane of [toServer, toClient]) lane.bytesPerSecond = bytesPerSecond;
    }
  }

  /** Resets every connection at once; bytes in transit are lost. */
  reset(): void {
    for (const pair of this.#pairs) this.end(pair);
  }

  /** Resets all open connections, and each new one until `accept` is called. */
  refuse(): void {
    this.#refusing = true;
    this.reset();
  }

  accept(): void {
    this.#refusing = false;
  }

  async close(): Promise<void> {
    this.refuse();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #accept(client: Socket): void {
    this.accepted++;
    if (this.#refusing) {
      client.resetAndDestroy();
      return;
    }
    const upstream = connect(this.#target.port, this.#target.host);
    const toServer = new Lane(client, upstream, (bytes) => this.onRequest(pair, bytes), this.#framed);
    const toClient = new Lane(upstream, client, (bytes) => this.onReply(pair, bytes), this.#framed);
    const pair: Pair = { client, upstream, toServer, toClient };
    for (const direction of lanesOf("both")) {
      const lane = pair[direction];
      lane.delayMs = this.#delayMs[direction];
      lane.bytesPerSecond = this.#bytesPerSecond;
      lane.pause(this.#paused[direction]);
    }
    this.#pairs.add(pair);
    for (const socket of [client, upstream]) {
      socket.setNoDelay(true);
      socket.on("error", () => undefined); // a `close` event follows, which the lane forwards to the other side
      socket.on("close", () => {
        if (client.closed && upstream.closed) this.#pairs.delete(pair);
      });
    }
  }

  /** Resets both connections of a pair. */
  end(pair: Pair): void {
    if (!this.#pairs.delete(pair)) return;
    pair.toServer.abandon();
    pair.toClient.abandon();
    pair.client.resetAndDestroy();
    pair.upstream.resetAndDestroy();
  }
}

function lanesOf(direction: Direction): readonly ("toServer" | "toClient")[] {
  return direction === "both" ? ["toServer", "toClient"] : [direction];
}

function parse(target: string): { host: string; port: number } {
  const [host = "127.0.0.1", port = ""] = target.split(":");
  return { host, port: Number(port) };
}
