import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { wholeLines } from "./whole-lines.ts";

export interface ProgramOptions {
  store?: string;
  directory?: string;
  schema?: string;
  name: string;
  tasks: number;
  log: string;
  handlerMs: number;
  /** True if each handler takes exactly `handlerMs`, not a random part of it. */
  even?: boolean;
  options?: Record<string, unknown>;
  /** Names of tasks without a schedule. */
  manual?: string[];
  /** Tasks with a schedule: how often each runs, by its name. */
  periods?: Record<string, string>;
  /** Options of a task "computing", whose handler computes without a pause as its payload says: see node.mjs. */
  computing?: Record<string, unknown>;
  /** Now and then the process computes without a pause: the shortest and the longest time, in ms. */
  computesMs?: readonly [number, number];
  /** Options of a worker by HTTP, whose tasks others define. */
  remote?: Record<string, unknown>;
  /** True if the program records when the machine gave it no processor. */
  stalls?: boolean;
  /** Settings that `options` would refuse. */
  settings?: Record<string, unknown>;
}

/** A line of a program's own record. Times are epoch milliseconds by this machine's clock. */
export interface Seen {
  kind: "start" | "end" | "stalled";
  task: string;
  slot: number;
  attempt: number;
  fence: number;
  node: string;
  at: number;
  /** For an end: whether the handler had been asked to stop. */
  aborted?: boolean;
  /** For a stall: its length, up to `at`. */
  ms?: number;
}

/** Processes of one test, all ended with it. */
export class Programs {
  readonly #children = new Map<string, ChildProcess>();
  readonly complaints: string[] = [];

  /** Starts a program; resolves when it has joined the cluster. */
  async start(options: ProgramOptions): Promise<void> {
    const child = spawn(process.execPath, [fileURLToPath(new URL("programs/node.mjs", import.meta.url))], {
      env: { ...process.env, CARILLON_TEST_PROGRAM: JSON.stringify(options) },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#children.set(options.name, child);
    child.stderr?.on("data", (data) => this.complaints.push(`${options.name}: ${data}`));
    const ready = new Promise<void>((resolve) => child.stdout?.once("data", () => resolve()));
    const gone = once(child, "exit").then(() => {
      throw new Error(`${options.name} ended before it was ready: ${this.complaints.join("")}`);
    });
    await Promise.race([ready, gone]);
    // From here on its end is caused by the test itself, or detected by missing output.
    gone.catch(() => undefined /* the missing output has already made the test fail */);
  }

  /** Sends the signal and waits for the end of the process. */
  async end(name: string, signal: NodeJS.Signals): Promise<void> {
    const child = this.#children.get(name);
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    child.kill(signal);
    await exited;
    this.#children.delete(name);
  }

  signal(name: string, signal: NodeJS.Signals): void {
    this.#children.get(name)?.kill(signal);
  }

  async endAll(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    await Promise.all([...this.#children.keys()].map((name) => this.end(name, signal)));
  }
}

export const readSeen = (path: string): Seen[] => wholeLines(path).map((line) => JSON.parse(line) as Seen);

/**
 * The ms before this start, from the earliest possible claim on, in which the process was given no processor; they do not count as
 * lateness of Carillon. Only for programs with `stalls`.
 */
export function stalledMs(seen: Seen[], { node, slot, at }: Seen): number {
  const near = seen.filter(
    (one) => one.kind === "stalled" && one.node === node && one.at > slot - 1_000 && one.at - (one.ms ?? 0) < at,
  );
  return near.reduce((sum, { ms = 0 }) => sum + ms, 0);
}
