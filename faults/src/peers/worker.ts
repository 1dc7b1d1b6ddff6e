import { type ChildProcess, fork } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { mortal } from "@carillon/zookeeper/testing";
import type { Line } from "../line.ts";
import type { Death, StandStill } from "./account.ts";
import type { Order } from "./subject.ts";

const program = fileURLToPath(new URL("process.js", import.meta.url));
const patienceMs = 60_000;
/** A process that ended by itself is restarted after this many ms, as a supervisor would do. */
const rebeginMs = 1_000;

/** One worker process with its restarts, and its proxied connection to the store. */
export class Worker {
  readonly line: Line;
  readonly deaths: Death[] = [];
  readonly standStills: StandStill[] = [];
  /** How often the process ended by itself after it had been ready. */
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
    // All lines that the process wrote are older than this time.
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

/** Starts a process that adds the order's slots and exits. @throws if it exits before it reports that they are acknowledged */
export async function adding(order: Order): Promise<void> {
  const child = started(order);
  const told = new Promise((resolve) => child.once("message", resolve));
  const over = new Promise((_, reject) =>
    child.once("exit", (code, signal) => reject(new Error(`${order.who} could not add: ${signal ?? code}`))),
  );
  await Promise.race([told, over]);
  over.catch(() => undefined); // The process exits after its message, so this rejection is expected.
}

function started(order: Order): ChildProcess {
  const child = mortal(fork(program, [JSON.stringify(order)], { stdio: ["ignore", 2, 2, "ipc"] }));
  child.on("error", () => undefined); // The exit event handles the end of the process.
  return child;
}
