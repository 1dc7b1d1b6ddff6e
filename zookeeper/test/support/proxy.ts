import { connect, createServer, type Server, type Socket } from "node:net";
import { Lane } from "./lane.ts";

/** Numbers of requests that tests name; any other number may be given too. */
export const op = {
  notification: 0,
  create: 1,
  delete: 2,
  exists: 3,
  getData: 4,
  setData: 5,
  getChildren: 8,
  sync: 9,
  ping: 11,
  getChildren2: 12,
  check: 13,
  multi: 14,
  create2: 15,
  createContainer: 19,
  createTtl: 21,
  multiRead: 22,
  auth: 100,
  setWatches: 101,
  sasl: 102,
  setWatches2: 105,
  addWatch: 106,
  closeSession: -11,
} as const;

export type Direction = "both" | "toServer" | "toClient";

/**
 * What becomes of a connection whose reply was swallowed: reset at once; left open and silent about that one; or given
 * so many bytes of the reply's frame, its length included, and then closed.
 */
export type Aftermath = "reset" | "silence" | { readonly bytes: number };

interface Pair {
  readonly client: Socket;
  readonly upstream: Socket;
  readonly toServer: Lane;
  readonly toClient: Lane;
}

interface Ambush {
  readonly opcode: number | undefined;
  readonly aftermath: Aftermath;
  readonly sprung: () => void;
  /** Connection and xid of the request it waits for. */
  prey: { readonly pair: Pair; readonly xid: number } | undefined;
}

/**
 * A TCP proxy in front of one ZooKeeper server with faults that are switched at run time. It reads the frames of both
 * directions to count requests and to know replies by what was asked, and changes no byte. Not for TLS ports.
 */
export class ZooKeeperProxy {
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  readonly #counts = new Map<number, number>();
  readonly #watchers = new Set<{ opcode: number; seen: () => void }>();
  #target: { host: string; port: number };
  #refusing = false;
  #paused = { toServer: false, toClient: false };
  #delayMs = { toServer: 0, toClient: 0 };
  #bytesPerSecond = Number.POSITIVE_INFINITY;
  #ambush: Ambush | undefined;
  /** Connections accepted so far. */
  accepted = 0;

  private constructor(target: string) {
    this.#target = parse(target);
    this.#server = createServer((client) => this.#accept(client));
  }

  /** @param target `host:port` of the server */
  static async before(target: string): Promise<ZooKeeperProxy> {
    const proxy = new ZooKeeperProxy(target);
    await new Promise<void>((resolve, reject) => {
      proxy.#server.once("error", reject);
      proxy.#server.listen(0, "127.0.0.1", resolve);
    });
    return proxy;
  }

  /** `host:port` for clients. */
  get address(): string {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the proxy does not listen");
    return `127.0.0.1:${address.port}`;
  }

  /** Connections that are open now. */
  get open(): number {
    return this.#pairs.size;
  }

  /** From now on new connections go to another server. */
  retarget(target: string): void {
    this.#target = parse(target);
  }

  /** A network that hangs: bytes wait here, no connection ends. New connections are accepted and wait too. */
  pause(direction: Direction = "both"): void {
    this.#setPaused(direction, true);
  }

  /** What waited goes on, in order. */
  resume(direction: Direction = "both"): void {
    this.#setPaused(direction, false);
  }

  #setPaused(direction: Direction, paused: boolean): void {
    for (const lane of lanesOf(direction)) {
      this.#paused[lane] = paused;
      for (const pair of this.#pairs) pair[lane].pause(paused);
    }
  }

  /** Each byte arrives so much later, of connections that are there and that come; 0 ends it. */
  delay(ms: number, direction: Direction = "both"): void {
    for (const lane of lanesOf(direction)) {
      this.#delayMs[lane] = ms;
      for (const pair of this.#pairs) pair[lane].delayMs = ms;
    }
  }

  /** In each direction and connection; Infinity ends it. */
  throttle(bytesPerSecond: number): void {
    this.#bytesPerSecond = bytesPerSecond;
    for (const { toServer, toClient } of this.#pairs) {
      for (const lane of [toServer, toClient]) lane.bytesPerSecond = bytesPerSecond;
    }
  }

  /** Every connection ends at once with a reset; what was on its way is lost. */
  reset(): void {
    for (const pair of this.#pairs) this.#end(pair);
  }

  /** Resets what is open and what comes, until `accept`. */
  refuse(): void {
    this.#refusing = true;
    this.reset();
  }

  accept(): void {
    this.#refusing = false;
  }

  /**
   * The reply to the next request (of that kind) never arrives, or only in part, though the server did what was asked.
   * Resolves when that has happened. Without a kind, pings do not count.
   */
  swallowReply(opcode?: number, aftermath: Aftermath = "reset"): Promise<void> {
    return new Promise((sprung) => {
      this.#ambush = { opcode, aftermath, sprung, prey: undefined };
    });
  }

  /** How many requests of that kind have passed. */
  requests(opcode: number): number {
    return this.#counts.get(opcode) ?? 0;
  }

  /** Resolves when the next request of that kind passes. */
  next(opcode: number): Promise<void> {
    return new Promise((resolve) => {
      const watcher = {
        opcode,
        seen: () => {
          this.#watchers.delete(watcher);
          resolve();
        },
      };
      this.#watchers.add(watcher);
    });
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
    const toServer = new Lane(client, upstream, (frame) => this.#onRequest(pair, frame));
    const toClient = new Lane(upstream, client, (frame) => this.#onReply(pair, frame));
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
      socket.on("error", () => undefined); // `close` follows, and the lane passes that on
      socket.on("close", () => {
        if (client.closed && upstream.closed) this.#pairs.delete(pair);
      });
    }
  }

  /** @param frame without its length; undefined for a connection's first */
  #onRequest(pair: Pair, frame: Buffer | undefined): number {
    if (frame === undefined || frame.length < 8) return Number.POSITIVE_INFINITY;
    const [xid, opcode] = [frame.readInt32BE(0), frame.readInt32BE(4)];
    this.#counts.set(opcode, this.requests(opcode) + 1);
    const ambush = this.#ambush;
    if (ambush && !ambush.prey && (ambush.opcode === opcode || (ambush.opcode === undefined && opcode !== op.ping))) {
      ambush.prey = { pair, xid };
    }
    for (const watcher of [...this.#watchers]) if (watcher.opcode === opcode) watcher.seen();
    return Number.POSITIVE_INFINITY;
  }

  #onReply(pair: Pair, frame: Buffer | undefined): number {
    const ambush = this.#ambush;
    if (frame === undefined || ambush?.prey?.pair !== pair || frame.readInt32BE(0) !== ambush.prey.xid) {
      return Number.POSITIVE_INFINITY;
    }
    this.#ambush = undefined;
    if (ambush.aftermath === "reset") this.#end(pair);
    ambush.sprung();
    return typeof ambush.aftermath === "object" ? ambush.aftermath.bytes : 0;
  }

  #end(pair: Pair): void {
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
