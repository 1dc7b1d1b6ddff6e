import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { mortal } from "../../src/testing/afterlife.ts";

/** A program of this folder in a process of its own, which communicates by IPC: messages are objects with `said`. */
export class Child {
  readonly process: ChildProcess;
  /** Resolves with its exit code or signal, when it has ended. */
  readonly gone: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  readonly #said: { readonly said: string }[] = [];
  readonly #ended: () => boolean;
  #complaints = "";
  #wake: () => void = () => undefined;
  /** Receives each message when it comes; those are not kept for `next`. */
  onMessage: ((message: { readonly said: string }) => boolean) | undefined;

  /** @param variable the environment variable with the program's configuration */
  constructor(program: string, variable: string, told: object) {
    const file = fileURLToPath(new URL(`programs/${program}`, import.meta.url));
    this.process = mortal(
      spawn(process.execPath, [file], {
        env: { ...process.env, [variable]: JSON.stringify(told) },
        stdio: ["ignore", "ignore", "pipe", "ipc"],
      }),
    );
    let ended = false;
    this.#ended = () => ended;
    this.gone = new Promise((resolve) => {
      this.process.once("exit", (code, signal) => {
        ended = true;
        resolve({ code, signal });
        this.#wake();
      });
    });
    this.process.stderr?.on("data", (text) => {
      this.#complaints += text;
    });
    this.process.on("message", (message: { said: string }) => {
      if (this.onMessage?.(message)) return;
      this.#said.push(message);
      this.#wake();
    });
  }

  /** The oldest message of that kind that has not been taken yet. @throws when the process ends before */
  async next<T extends object = object>(said: string): Promise<T> {
    for (;;) {
      const at = this.#said.findIndex((message) => message.said === said);
      if (at >= 0) return this.#said.splice(at, 1)[0] as unknown as T;
      if (this.#ended()) throw new Error(`it ended before it said ${said}: ${this.#complaints}`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  send(message: object): void {
    this.process.send(message);
  }

  signal(signal: "SIGSTOP" | "SIGCONT"): void {
    this.process.kill(signal);
  }

  async kill(): Promise<void> {
    this.process.kill("SIGKILL");
    await this.gone;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill();
  }
}
