import { type Pair, TcpProxy } from "../../src/testing/tcp-proxy.ts";

/** Opcodes that tests name. Any other opcode can be used too. */
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

export type { Direction } from "../../src/testing/tcp-proxy.ts";

/**
 * What happens to a connection after its reply was swallowed. reset: the connection is reset at once. silence: it stays open, without that
 * reply. bytes: this number of bytes of the reply's frame, including its length prefix, is forwarded, and then the connection is reset.
 */
export type Aftermath = "reset" | "silence" | { readonly bytes: number };

interface Ambush {
  readonly opcode: number | undefined;
  readonly aftermath: Aftermath;
  readonly sprung: () => void;
  /** The connection and xid of the request whose reply will be swallowed; undefined until it is sent. */
  prey: { readonly pair: Pair; readonly xid: number } | undefined;
}

/**
 * A TCP proxy in front of one ZooKeeper server. Its faults can be switched on and off. It parses the frames of both directions, to count
 * requests and to match replies with their requests, but never changes the bytes that it forwards. Not for TLS ports.
 */
export class ZooKeeperProxy extends TcpProxy {
  readonly #counts = new Map<number, number>();
  readonly #watchers = new Set<{ opcode: number; seen: () => void }>();
  #ambush: Ambush | undefined;

  private constructor(target: string) {
    super(target, true);
    this.onRequest = (pair, frame) => this.#asked(pair, frame);
    this.onReply = (pair, frame) => this.#answered(pair, frame);
  }

  /** Starts a proxy. @param target `host:port` of the server */
  static override async before(target: string): Promise<ZooKeeperProxy> {
    const proxy = new ZooKeeperProxy(target);
    await proxy.listen();
    return proxy;
  }

  /**
   * Swallows the reply to the next request with this opcode, or all but the reply's first bytes (see `Aftermath`); the server executes the
   * request. Resolves when the reply has been swallowed. Without an opcode, the next request that is not a ping is chosen.
   */
  swallowReply(opcode?: number, aftermath: Aftermath = "reset"): Promise<void> {
    return new Promise((sprung) => {
      this.#ambush = { opcode, aftermath, sprung, prey: undefined };
    });
  }

  /** Number of requests with this opcode so far. */
  requests(opcode: number): number {
    return this.#counts.get(opcode) ?? 0;
  }

  /** Resolves when the next request with this opcode passes the proxy. */
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

  /** @param frame the request without its length prefix; undefined for a connection's first request, the handshake */
  #asked(pair: Pair, frame: Buffer | undefined): number {
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

  #answered(pair: Pair, frame: Buffer | undefined): number {
    const ambush = this.#ambush;
    if (frame === undefined || ambush?.prey?.pair !== pair || frame.readInt32BE(0) !== ambush.prey.xid) {
      return Number.POSITIVE_INFINITY;
    }
    this.#ambush = undefined;
    if (ambush.aftermath === "reset") this.end(pair);
    ambush.sprung();
    return typeof ambush.aftermath === "object" ? ambush.aftermath.bytes : 0;
  }
}
