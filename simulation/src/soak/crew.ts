import { type ChildProcess, fork } from "node:child_process";
import { readdirSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import type { Asked, Held, Order, Told } from "./order.ts";

const startMs = 90_000;
const answerMs = 5_000;

/** One process of the cluster; it can be started again after it has ended. */
export class Member {
  readonly order: Order;
  readonly #program: string;
  #child: ChildProcess | undefined;
  #gone: Promise<unknown> = Promise.resolve();
  /** True while the process is suspended by SIGSTOP and therefore cannot answer. */
  stands = false;
  /** True while the process should be running. If it ends although this is true, that counts as a violation. */
  #wanted = false;
  /** Descriptions of unexpected ends of the process, and of stops that took too long. */
  readonly surprises: string[] = [];

  constructor(order: Order, program = new URL("./process.js", import.meta.url).pathname) {
    this.order = order;
    this.#program = program;
  }

  get name(): string {
    return this.order.name;
  }

  get alive(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Starts the process and resolves when it has joined the cluster. @throws if it ends before that or takes longer than `startMs` */
  async start(): Promise<void> {
    const child = fork(this.#program, [JSON.stringify(this.order)], {
      stdio: ["ignore", "ignore", "inherit", "ipc"],
      execArgv: ["--expose-gc"],
    });
    this.#child = child;
    this.#wanted = true;
    this.#gone = new Promise((resolve) => {
      child.once("exit", (code, signal) => {
        if (this.#wanted) this.surprises.push(`${this.name} ended by itself with ${signal ?? code}`);
        resolve(undefined);
      });
    });
    const told = await Promise.race([this.#told("started", startMs), this.#gone]);
    if (told === undefined) throw new Error(`${this.name} did not start`);
  }

  async kill(): Promise<void> {
    this.#wanted = false;
    this.#child?.kill("SIGKILL");
    await this.#gone;
    this.stands = false;
  }

  stand(): void {
    this.stands = true;
    this.#child?.kill("SIGSTOP");
  }

  go(): void {
    this.stands = false;
    this.#child?.kill("SIGCONT");
  }

  /** Stops the process gracefully; kills it if that takes longer than `startMs`. */
  async stop(): Promise<void> {
    if (!this.alive) return;
    this.#wanted = false;
    this.go();
    this.#ask("stop");
    await Promise.race([this.#gone, pause(startMs, undefined, { ref: false })]);
    if (this.alive) {
      this.surprises.push(`${this.name} did not stop within ${startMs} ms`);
      await this.kill();
    }
  }

  /** Asks the process for its resources; undefined if it is suspended, is not running, or does not answer in time. */
  async held(): Promise<(Held & { files: number; pid: number }) | undefined> {
    if (!this.alive || this.stands) return undefined;
    const told = this.#told("held", answerMs);
    this.#ask("held");
    const answer = await told;
    const pid = this.#child?.pid;
    if (answer?.kind !== "held" || pid === undefined) return undefined;
    return { ...answer.held, files: openFiles(pid), pid };
  }

  #ask(asked: Asked): void {
    // Errors are ignored, because a process that has just ended cannot be reached; its `exit` event reports the end.
    this.#child?.send(asked, () => undefined);
  }

  #told(kind: Told["kind"], withinMs: number): Promise<Told | undefined> {
    const child = this.#child as ChildProcess;
    return new Promise((resolve) => {
      const done = (told: Told | undefined) => {
        clearTimeout(late);
        child.off("message", listen);
        resolve(told);
      };
      const listen = (told: Told) => {
        if (told.kind === kind) done(told);
      };
      const late = setTimeout(() => done(undefined), withinMs);
      child.on("message", listen);
      void this.#gone.then(() => done(undefined));
    });
  }
}

/** The number of open files; NaN if the system does not show it. */
function openFiles(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length;
  } catch {
    // The process has ended, or the system is not Linux.
    return Number.NaN;
  }
}
