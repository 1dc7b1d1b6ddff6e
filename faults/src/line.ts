import { all, type Direction, TcpProxy } from "@carillon/zookeeper/testing";
import type { Dice } from "../../simulation/src/plan/dice.ts";

/** Faults of a connection. `late`: bytes that were held back are delivered when the fault ends; otherwise their connection is reset. */
export type Trouble =
  | { readonly kind: "cut" }
  | { readonly kind: "silent"; readonly way: Direction; readonly late: boolean }
  | { readonly kind: "slow"; readonly ms: number; readonly bytesPerSecond: number }
  /** With probability `chance` an answer is lost, or only its first half is delivered, although the request was executed. */
  | { readonly kind: "answers lost"; readonly chance: number; readonly part: boolean; readonly dice: Dice };

/** The proxied network route from one process to one server. */
export class Line {
  readonly #proxy: TcpProxy;

  private constructor(proxy: TcpProxy) {
    this.#proxy = proxy;
  }

  /** @param address the server's `host:port` */
  static async to(address: string): Promise<Line> {
    return new Line(await TcpProxy.before(address));
  }

  /** The proxy's `host:port`, to which the process connects instead of the server's. */
  get at(): string {
    return this.#proxy.address;
  }

  /** Returns the URL with the proxy's host and port. */
  url(of: string): string {
    const url = new URL(of);
    url.host = this.at;
    return url.href;
  }

  /** Begins the fault. @returns a function that ends it */
  trouble(trouble: Trouble): () => void {
    const proxy = this.#proxy;
    switch (trouble.kind) {
      case "cut":
        proxy.refuse();
        return () => proxy.accept();
      case "silent":
        proxy.pause(trouble.way);
        return () => {
          if (!trouble.late) proxy.reset();
          proxy.resume(trouble.way);
        };
      case "slow":
        proxy.delay(trouble.ms);
        proxy.throttle(trouble.bytesPerSecond);
        return () => {
          proxy.delay(0);
          proxy.throttle(Number.POSITIVE_INFINITY);
        };
      case "answers lost":
        proxy.onReply = (pair, bytes) => {
          if (!trouble.dice.chance(trouble.chance) || !bytes || bytes.length < 2) return all();
          if (trouble.part) return Math.ceil(bytes.length / 2);
          proxy.end(pair);
          return 0;
        };
        return () => {
          proxy.onReply = all;
        };
    }
  }

  async close(): Promise<void> {
    await this.#proxy.close();
  }
}
