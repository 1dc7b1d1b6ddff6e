import { type ChildProcess, fork } from "node:child_process";
import type { Asked, Order, Told } from "./crowd.ts";

/** A process that contains many members. */
export class Crowd {
  readonly #child: ChildProcess;
  #answer: { resolve: (leads: number) => void; reject: (error: Error) => void } | undefined;
  readonly ready: Promise<number>;

  constructor(order: Order) {
    this.ready = this.#next();
    this.#child = fork(new URL("./crowd.js", import.meta.url), [JSON.stringify(order)], {
      stdio: ["ignore", 2, 2, "ipc"],
    });
    this.#child.on("message", (told: Told) => {
      if ("failed" in told) this.#answer?.reject(new Error(told.failed));
      else this.#answer?.resolve(told.leads);
    });
    this.#child.on("exit", (code, signal) => this.#answer?.reject(new Error(`a crowd ended with ${signal ?? code}`)));
  }

  /** Sends an order to the process. @returns the number of its nodes that lead afterwards */
  ask(asked: Asked): Promise<number> {
    const answer = this.#next();
    this.#child.send(asked);
    return answer;
  }

  kill(): void {
    this.#answer = undefined;
    this.#child.kill("SIGKILL");
  }

  #next(): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#answer = { resolve, reject };
    });
  }
}
