import { type ChildProcess, fork } from "node:child_process";
import type { IntervalHistogram } from "node:perf_hooks";
import { setTimeout as pause } from "node:timers/promises";
import { type Start, startsOf } from "./starts.ts";

/** The messages that a process under test sends to the measuring process. */
export type Told =
  | { kind: "started" }
  | { kind: "starts"; batch: Float64Array }
  | { kind: "usage"; cpuUs: number; rssBytes: number; stallMs: number }
  | { kind: "stopped" };

export type Asked = { kind: "usage" } | { kind: "stop" };

export interface Usage {
  /** CPU time of the process in µs, all threads, user and system, since its start. */
  cpuUs: number;
  /** The peak memory of the process, in bytes. */
  rssBytes: number;
  /** The longest time in ms for which the event loop was blocked since the last such message; 0 if the process does not measure it. */
  stallMs: number;
}

/** The handle of a process under test. If the process ends without `stop`, all pending requests to it reject. */
export class Subject {
  readonly starts: Start[] = [];
  readonly #child: ChildProcess;
  readonly #waiting = new Map<Told["kind"], (told: Told) => void>();
  readonly #exit: Promise<string>;
  #died: string | undefined;

  constructor(program: URL, order: unknown) {
    this.#child = fork(program, [JSON.stringify(order)], {
      serialization: "advanced",
      stdio: ["ignore", 2, 2, "ipc"],
      execArgv: (process.env.CARILLON_BENCH_NODE_OPTIONS ?? "").split(" ").filter(Boolean),
    });
    this.#exit = this.#over();
    this.#child.on("message", (told: Told) => {
      // A batch can have more records than a call may have arguments.
      if (told.kind === "starts") for (const start of startsOf(told.batch)) this.starts.push(start);
      this.#waiting.get(told.kind)?.(told);
      this.#waiting.delete(told.kind);
    });
  }

  async started(patienceMs: number): Promise<void> {
    await this.#answer("started", patienceMs);
  }

  async usage(): Promise<Usage> {
    const answer = this.#answer("usage", 10_000);
    this.#ask({ kind: "usage" });
    const { cpuUs, rssBytes, stallMs } = (await answer) as Told & { kind: "usage" };
    return { cpuUs, rssBytes, stallMs };
  }

  /**
   * Stops the process gracefully: its runs end, it sends its last records and exits with 0.
   * @throws on another exit code, or if the process has not stopped after `patienceMs`
   */
  async stop(patienceMs = 60_000): Promise<void> {
    const answer = this.#answer("stopped", patienceMs);
    this.#ask({ kind: "stop" });
    await answer;
    const exit = await this.#exit;
    if (exit !== "0") throw new Error(`the process under test ended with ${exit}`);
  }

  kill(): void {
    if (this.#died === undefined) this.#child.kill("SIGKILL");
  }

  /** Resolves with the exit code or signal, once the process has ended and all its messages have been received. */
  async #over(): Promise<string> {
    const disconnected = new Promise((resolve) => this.#child.once("disconnect", resolve));
    const exit = await new Promise<string>((resolve) => {
      this.#child.once("exit", (code, signal) => resolve(String(signal ?? code)));
    });
    this.#died = exit;
    await disconnected;
    return exit;
  }

  #ask(asked: Asked): void {
    if (this.#died === undefined) this.#child.send(asked);
  }

  async #answer(kind: Told["kind"], patienceMs: number): Promise<Told> {
    const told = new Promise<Told>((resolve) => this.#waiting.set(kind, resolve));
    const impatience = new AbortController();
    const late = pause(patienceMs, "late" as const, { signal: impatience.signal });
    try {
      const first = await Promise.race([told, this.#exit, late]);
      if (first === "late") throw new Error(`the process under test did not say ${kind} within ${patienceMs} ms`);
      if (typeof first === "string") throw new Error(`the process under test ended by itself with ${first}`);
      return first;
    } finally {
      impatience.abort();
      late.catch(() => undefined); // The rejection by the abort above is expected.
    }
  }
}

/**
 * Answers the measuring process's requests inside a process under test.
 * @param stop resolves when all work has ended and is stored
 * @param loop measures how long the event loop is blocked
 */
export function answerAsSubject(stop: () => Promise<void>, loop?: IntervalHistogram): (told: Told) => void {
  const tell = (told: Told) => {
    process.send?.(told);
  };
  // The parent process measures; when it has gone, this process exits too.
  const abandoned = () => process.exit(1);
  process.on("message", (asked: Asked) => {
    if (asked.kind === "usage") {
      const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
      const stallMs = loop ? loop.max / 1e6 : 0;
      loop?.reset();
      tell({ kind: "usage", cpuUs: userCPUTime + systemCPUTime, rssBytes: maxRSS * 1024, stallMs });
      return;
    }
    stop().then(
      () => {
        process.off("disconnect", abandoned);
        process.send?.({ kind: "stopped" } satisfies Told, () => process.disconnect());
      },
      (error) => {
        console.error(error);
        process.exit(1);
      },
    );
  });
  process.on("disconnect", abandoned);
  return tell;
}
