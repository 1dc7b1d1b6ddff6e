import { all, type Direction, TcpProxy } from "@carillon/zookeeper/testing";
import type { Dice } from "../../simulation/src/plan/dice.ts";

/** Faults of a line. `late`: held bytes arrive in the end; otherwise they are lost with their connection. */
export type Trouble =
  | { readonly kind: "cut" }
  | { readonly kind: "silent"; readonly way: Direction; readonly late: boolean }
  | { readonly kind: "slow"; readonly ms: number; readonly bytesPerSecond: number }
  /** The share of answers that never come, or come in part, although the request was carried out. */
  | { readonly kind: "answers lost"; readonly chance: number; readonly part: boolean; readonly dice: Dice };

/** A line of one process to one server. */
export class Line {
  readonly #proxy: TcpProxy;

  private constructor(proxy: TcpProxy) {
    this.#proxy = proxy;
  }

  /** @param address `host:port` */
  static async to(address: string): Promise<Line> {
    return new Line(await TcpProxy.before(address));
  }

  /** The address to connect to instead of the server's. */
  get at(): string {
    return this.#proxy.address;
  }

  /** The same URL by way of this line. */
  url(of: string): string {
    const url = new URL(of);
    url.host = this.at;
    return url.href;
  }

  /** @returns mends it */
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
