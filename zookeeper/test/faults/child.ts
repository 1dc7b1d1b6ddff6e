import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { mortal } from "../../src/testing/afterlife.ts";

/** Runs a program of the folder `programs` in a child process. The program sends messages by IPC: objects with the field `said`. */
export class Child {
  readonly process: ChildProcess;
  /** Resolves with the exit code or signal when the process has ended. */
  readonly gone: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  readonly #said: { readonly said: string }[] = [];
  readonly #ended: () => boolean;
  #complaints = "";
  #wake: () => void = () => undefined;
  /** Called with each message. If it returns true, the message is not kept for `next`. */
  onMessage: ((message: { readonly said: string }) => boolean) | undefined;

  /** @param variable the environment variable that contains the program's configuration @param told the configuration */
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

  /** Returns the oldest message of this kind that has not been returned yet, or waits for it. @throws if the process ends first */
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
