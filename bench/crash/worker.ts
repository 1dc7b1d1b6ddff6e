import { type ChildProcess, fork } from "node:child_process";
import type { Order } from "./order.ts";

/** One worker process. */
export class BenchWorker {
  readonly name: string;
  readonly #child: ChildProcess;
  readonly #ended: Promise<string>;

  private constructor(order: Order) {
    this.name = order.name;
    this.#child = fork(new URL("./subject.js", import.meta.url), [JSON.stringify(order)], {
      stdio: ["ignore", 2, 2, "ipc"],
    });
    this.#ended = new Promise((resolve) => {
      this.#child.once("exit", (code, signal) => resolve(String(signal ?? code)));
    });
  }

  /** Starts the process; resolves when the worker has joined the cluster. */
  static async start(order: Order): Promise<BenchWorker> {
    const worker = new BenchWorker(order);
    const started = new Promise<undefined>((resolve) => worker.#child.once("message", () => resolve(undefined)));
    const exit = await Promise.race([started, worker.#ended]);
    if (exit !== undefined) throw new Error(`the worker ${order.name} ended with ${exit} before it had started`);
    return worker;
  }

  /** Kills the worker (kill -9). @returns the time of the kill in epoch ms */
  kill(): number {
    const atMs = Date.now();
    this.#child.kill("SIGKILL");
    return atMs;
  }

  /** Stops the worker gracefully; resolves when its process has ended. @throws if the exit code is not 0 */
  async stop(): Promise<void> {
    this.#child.send("stop");
    const exit = await this.#ended;
    if (exit !== "0") throw new Error(`the worker ${this.name} ended with ${exit} when it was stopped`);
  }

  async close(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#ended;
  }
}
