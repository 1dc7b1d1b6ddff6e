import { type ChildProcess, spawn } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { mortal } from "@carillon/zookeeper/testing";
import type { MemberOrder } from "./member.ts";
import type { Version } from "./seen.ts";

const program = fileURLToPath(new URL("member.js", import.meta.url));

/** A process of either version, from its start to its end. */
export class Process {
  readonly name: string;
  readonly by: Version;
  readonly role: MemberOrder["role"];
  readonly #child: ChildProcess;
  readonly #gone: Promise<void>;
  #heard = "";

  constructor(order: MemberOrder) {
    this.name = order.name;
    this.by = order.by;
    this.role = order.role;
    this.#child = mortal(
      spawn(process.execPath, [program, JSON.stringify(order)], { stdio: ["pipe", "pipe", "inherit"] }),
    );
    this.#child.stdout?.on("data", (text) => {
      this.#heard += text;
    });
    // The process may have ended before "quiet" is written to it.
    this.#child.stdin?.on("error", () => undefined);
    this.#gone = new Promise((resolve) => this.#child.once("exit", () => resolve()));
  }

  get alive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** The exit code or the signal; "nothing" while the process runs. */
  get how(): string {
    return String(this.#child.signalCode ?? this.#child.exitCode ?? "nothing");
  }

  async started(patienceMs: number): Promise<void> {
    const deadline = performance.now() + patienceMs;
    while (!this.#heard.includes("started")) {
      if (!this.alive) throw new Error(`${this.name} ended by ${this.how} instead of starting`);
      if (performance.now() > deadline) throw new Error(`${this.name} did not start within ${patienceMs} ms`);
      await pause(20);
    }
  }

  /** Ends the process's enqueuing. */
  quiet(): void {
    if (this.alive) this.#child.stdin?.write("quiet\n");
  }

  /** Stops the process with SIGTERM, as a deployment does. @throws if it has not ended after `patienceMs` */
  async end(patienceMs: number): Promise<void> {
    this.#child.kill("SIGTERM");
    const over = new AbortController();
    const late = pause(patienceMs, "late", { signal: over.signal }).catch(() => undefined); // The abort below rejects this pause.
    if ((await Promise.race([this.#gone, late])) === "late") throw new Error(`${this.name} did not end`);
    over.abort();
  }

  kill(): void {
    if (this.alive) this.#child.kill("SIGKILL");
  }
}
