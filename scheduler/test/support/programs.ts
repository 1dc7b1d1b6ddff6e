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
  /** True if each handler takes `handlerMs`; otherwise each handler takes a random part of that time. */
  even?: boolean;
  options?: Record<string, unknown>;
  /** Names of tasks without a schedule. */
  manual?: string[];
  /** Tasks with a schedule: the period of each task, by its name. */
  periods?: Record<string, string>;
  /** Options of a task "computing" whose handler blocks the event loop as its payload says: see node.mjs. */
  computing?: Record<string, unknown>;
  /** If given, the process blocks its event loop now and then: the shortest and the longest time, in ms. */
  computesMs?: readonly [number, number];
  /** Options of a remote worker. If given, the process is such a worker, and its tasks are defined elsewhere. */
  remote?: Record<string, unknown>;
  /** True if the program records when the machine delayed it. */
  stalls?: boolean;
  /** Internal settings that `options` would refuse. */
  settings?: Record<string, unknown>;
}

/** One line of the log that a program writes. Times are epoch milliseconds by this machine's clock. */
export interface Seen {
  kind: "start" | "end" | "stalled";
  task: string;
  slot: number;
  attempt: number;
  fence: number;
  node: string;
  at: number;
  /** For an end: true if the handler's signal had been aborted. */
  aborted?: boolean;
  /** For a stall: its length in ms; the stall ended at `at`. */
  ms?: number;
}

/** The child processes of one test. */
export class Programs {
  readonly #children = new Map<string, ChildProcess>();
  readonly complaints: string[] = [];

  /** Starts a program, and resolves once it is ready. @throws if it ends before that */
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
    // From now on, an end of the process is no error here: the test ends the process itself, or notices its missing output.
    gone.catch(() => undefined /* a test that needs its output fails without it */);
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
 * Returns for how long the machine delayed the process before this start, from the earliest possible claim on, in ms. This time does not
 * count as lateness of Carillon. Only for programs with `stalls`.
 */
export function stalledMs(seen: Seen[], { node, slot, at }: Seen): number {
  const near = seen.filter(
    (one) => one.kind === "stalled" && one.node === node && one.at > slot - 1_000 && one.at - (one.ms ?? 0) < at,
  );
  return near.reduce((sum, { ms = 0 }) => sum + ms, 0);
}
