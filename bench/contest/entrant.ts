import { type ChildProcess, fork } from "node:child_process";
import type { Answer, Calls } from "./calls.ts";
import type { Order } from "./contender.ts";

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** The measuring process's handle of a process under test. If that process dies, all pending requests reject. */
export class Entrant {
  readonly #child: ChildProcess;
  readonly #who: string;
  readonly #waiting = new Map<number, Waiting>();
  readonly #ended: Promise<string>;
  #seq = 0;
  #died: string | undefined;

  private constructor(order: Order) {
    this.#who = order.who;
    this.#child = fork(new URL("./process.js", import.meta.url), [JSON.stringify(order)], {
      serialization: "advanced",
      stdio: ["ignore", 2, 2, "ipc"],
      execArgv: (process.env.CARILLON_BENCH_NODE_OPTIONS ?? "").split(" ").filter(Boolean),
    });
    this.#child.on("message", (answer: Answer) => {
      const waiting = this.#waiting.get(answer.seq);
      this.#waiting.delete(answer.seq);
      if ("failed" in answer) waiting?.reject(new Error(`${this.#who}: ${answer.failed}`));
      else waiting?.resolve(answer.value);
    });
    this.#ended = new Promise((resolve) => {
      this.#child.once("exit", (code, signal) => {
        this.#died = String(signal ?? code);
        for (const { reject } of this.#waiting.values())
          reject(new Error(`${this.#who}: the process under test ended by itself with ${this.#died}`));
        resolve(this.#died);
      });
    });
  }

  /** Starts the process; resolves when the contender is connected. */
  static async enter(order: Order): Promise<Entrant> {
    const entrant = new Entrant(order);
    await entrant.ask("open");
    return entrant;
  }

  async ask<Call extends keyof Calls>(call: Call, ...order: Parameters<Calls[Call]>): Promise<ReturnType<Calls[Call]>> {
    if (this.#died !== undefined) throw new Error(`${this.#who}: the process under test has ended`);
    const seq = ++this.#seq;
    return new Promise((resolve, reject) => {
      this.#waiting.set(seq, { resolve: resolve as Waiting["resolve"], reject });
      this.#child.send({ seq, call, order: order[0] });
    });
  }

  /** Stops the process gracefully, after its runs in progress have ended. @throws if the exit code is not 0 */
  async stop(): Promise<void> {
    await this.ask("stop");
    const exit = await this.#ended;
    if (exit !== "0") throw new Error(`${this.#who}: the process under test ended with ${exit}`);
  }

  async close(): Promise<void> {
    if (this.#died === undefined) this.#child.kill("SIGKILL");
    await this.#ended;
  }
}
