import { type ChildProcess, fork } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { mortal } from "@carillon/zookeeper/testing";
import type { Line } from "../line.ts";
import type { Death, StandStill } from "./account.ts";
import type { Order } from "./subject.ts";

const program = fileURLToPath(new URL("process.js", import.meta.url));
const patienceMs = 60_000;
/** A supervisor restarts a process that ended by itself after this time. */
const rebeginMs = 1_000;

/** One worker process, over its lives, and its line to the store. */
export class Worker {
  readonly line: Line;
  readonly deaths: Death[] = [];
  readonly standStills: StandStill[] = [];
  /** How often it ended after it had been ready, without being ended by the harness. */
  fell = 0;
  readonly #order: Omit<Order, "life">;
  #child: ChildProcess | undefined;
  #life = 0;
  #closed = false;
  #ready = false;

  constructor(order: Omit<Order, "life">, line: Line) {
    this.#order = order;
    this.line = line;
  }

  get now(): { worker: string; life: number } {
    return { worker: this.#order.name, life: this.#life };
  }

  begin(): void {
    if (this.#closed) return;
    this.#life++;
    this.#ready = false;
    const { life } = this.now;
    const child = started({ ...this.#order, life });
    this.#child = child;
    child.once("message", () => {
      this.#ready = true;
    });
    child.once("exit", () => {
      if (this.#life !== life || this.deaths.at(-1)?.life === life || this.#closed) return;
      this.deaths.push({ ...this.now, atMs: Date.now() });
      if (this.#ready) this.fell++;
      setTimeout(() => this.begin(), rebeginMs);
    });
  }

  async ready(): Promise<void> {
    const deadline = performance.now() + patienceMs;
    while (!this.#ready) {
      if (performance.now() > deadline) throw new Error(`${this.#order.name} was not ready within ${patienceMs} ms`);
      await pause(20);
    }
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    // It wrote everything up to here before it died.
    this.deaths.push({ ...this.now, atMs: Date.now() });
    await gone;
  }

  async standStill(forMs: number): Promise<void> {
    const from = { ...this.now, atMs: Date.now() };
    this.#child?.kill("SIGSTOP");
    await pause(forMs);
    this.standStills.push({ ...from, untilMs: Date.now() });
    this.#child?.kill("SIGCONT");
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.kill();
    await this.line.close();
  }
}

/** A process that adds these slots and ends. @throws if it does not report that they are acknowledged */
export async function adding(order: Order): Promise<void> {
  const child = started(order);
  const told = new Promise((resolve) => child.once("message", resolve));
  const over = new Promise((_, reject) =>
    child.once("exit", (code, signal) => reject(new Error(`${order.who} could not add: ${signal ?? code}`))),
  );
  await Promise.race([told, over]);
  over.catch(() => undefined); // It was notified before it ended.
}

function started(order: Order): ChildProcess {
  const child = mortal(fork(program, [JSON.stringify(order)], { stdio: ["ignore", 2, 2, "ipc"] }));
  child.on("error", () => undefined); // its exit reports it
  return child;
}
