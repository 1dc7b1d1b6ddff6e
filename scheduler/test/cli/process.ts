import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmod, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { runState } from "../../src/store/postgres/states.ts";
import { postgres } from "../support/servers.ts";

export const main = fileURLToPath(new URL("../../lib/cli.js", import.meta.url));

/** How long a test waits for a process, in ms: longer than any command takes on a loaded machine, shorter than the limit of a test. */
const patienceMs = 90_000;
/** How many characters of the latest output the error message of a failed wait contains. */
const shownLetters = 4_000;

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface Where {
  cwd: string;
  env?: Record<string, string>;
  /** Runs the command in a pseudo-terminal with this many columns and 30 rows; undefined: without a terminal. */
  columns?: number;
}

/** A real `carillon` process, started as a shell does; without a terminal unless `columns` is given. */
export class Cli {
  readonly #args: readonly string[];
  readonly #child: ChildProcess;
  readonly #ended: Promise<Ended>;
  #waiting: (() => void)[] = [];
  stdout = "";
  stderr = "";

  constructor(args: string[], { cwd, env, columns }: Where) {
    this.#args = args;
    const words = [process.execPath, main, ...args];
    const quoted = words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
    const [program = "", ...rest] =
      columns === undefined ? words : ["script", "-qefc", `stty cols ${columns} rows 30; exec ${quoted}`, "/dev/null"];
    const inherited = Object.entries(process.env).filter(
      ([name]) => !/^(CARILLON|DATABASE_URL|NO_COLOR|FORCE_COLOR|TERM)/.test(name),
    );
    this.#child = spawn(program, rest, {
      cwd,
      env: { ...Object.fromEntries(inherited), TERM: "xterm-256color", TZ: "UTC", ...env },
      stdio: ["pipe", "pipe", "pipe"],
    });
    this.#child.stdout?.on("data", (data) => this.#hear("stdout", data));
    this.#child.stderr?.on("data", (data) => this.#hear("stderr", data));
    this.#ended = once(this.#child, "close").then(([code]) => {
      this.#wake();
      return { code: code as number | null, stdout: this.stdout, stderr: this.stderr };
    });
  }

  #hear(stream: "stdout" | "stderr", data: Buffer): void {
    this[stream] += data;
    this.#wake();
  }

  #wake(): void {
    for (const one of this.#waiting.splice(0)) one();
  }

  /** Waits until the output matches. @throws if the process ends before that, or does not write matching output within `patienceMs` */
  async says(pattern: RegExp, stream: "stdout" | "stderr" = "stdout"): Promise<RegExpExecArray> {
    let over = false;
    void this.#ended.then(() => {
      over = true;
      this.#wake();
    });
    return this.#inTime(`${pattern} on its ${stream}`, async (given) => {
      while (!given.aborted) {
        const found = pattern.exec(this[stream]);
        if (found) return found;
        if (over) throw new Error(`it ended before it said ${pattern}:\n${this.stdout}\n${this.stderr}`);
        await new Promise<void>((resolve) => this.#waiting.push(resolve));
      }
      throw new Error(`no longer waiting for ${pattern}`);
    });
  }

  /**
   * Waits until `wait` settles.
   * @throws an error with the command line and its latest output if that takes longer than `patienceMs`
   */
  async #inTime<T>(what: string, wait: (givenUp: AbortSignal) => Promise<T>): Promise<T> {
    const givenUp = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        const output = `stdout:\n${this.stdout.slice(-shownLetters)}\nstderr:\n${this.stderr.slice(-shownLetters)}`;
        reject(new Error(`carillon ${this.#args.join(" ")}: waited ${patienceMs} ms in vain for ${what}\n${output}`));
        givenUp.abort();
        this.#wake();
      }, patienceMs);
    });
    try {
      return await Promise.race([wait(givenUp.signal), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Sends input, like keys pressed in the terminal of the process. */
  type(text: string): void {
    this.#child.stdin?.write(text);
  }

  /** Closes the test's end of the stream, so that the process writes to a closed pipe. */
  unread(stream: "stdout" | "stderr"): void {
    this.#child[stream]?.destroy();
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  ended(): Promise<Ended> {
    return this.#inTime("its end", () => this.#ended);
  }

  end(name: NodeJS.Signals): Promise<Ended> {
    this.signal(name);
    return this.ended();
  }
}

export const { url } = postgres();

/** The tasks file, in TypeScript. It lies in a folder from which Node.js cannot resolve the package carillon. */
const tasksFile = `
import { carillon, cron, every, type Run } from "carillon";
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
export const tower = carillon();
tower.task("beat", { schedule: every("200ms") }, (run: Run) => { console.log("from the handler"); run.log.info("ding", { n: run.attempt }); });
tower.task("settle", { schedule: cron("30 2 * * *", { zone: "America/New_York" }), description: "Settles." }, () => ({ settled: 3 }));
tower.task("echo", {}, (_run: Run, payload: unknown) => payload);
tower.task("broken", { retry: { attempts: 2, delay: "20ms" } }, () => { throw new Error("no route to \\u001b[2Jbank"); });
tower.task("endless", {}, (run: Run) => new Promise((_, reject) => run.signal.addEventListener("abort", () => reject(run.signal.reason))));
tower.task("deaf", {}, () => sleep(600_000));
`;

/** The folder is created once for each test file, the schema once for each test. */
export let folder: string;
export let schema: string;
let running: Cli[] = [];

export const start = (args: string[], where: Partial<Where> = {}): Cli => {
  const one = new Cli(args, { cwd: folder, ...where });
  running.push(one);
  return one;
};
export const here = () => ["--store", url, "--schema", schema];
export const ask = (...args: string[]): Promise<Ended> => start([...args, ...here()]).ended();
export const json = async (...args: string[]) => JSON.parse((await ask(...args, "--json")).stdout);
export const objects = (text: string) =>
  text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
/** Runs SQL in which `$s` stands for the test's schema. Used for conditions that a test waits for, because a command starts a process. */
export async function rows(text: string, ...values: unknown[]): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query(text.replaceAll("$s", schema), values)).rows;
  } finally {
    await client.end();
  }
}
export const leads = async (node: string) =>
  (await rows("select from $s.leadership l join $s.session s on s.id = l.session_id where s.node = $1", node)).length >
  0;
/** Resolves with true if a coordination service, and not the store, detects the end of every open session. */
export const reliesOnService = async () =>
  (await rows("select from $s.session where ended_ms is null and not witnessed")).length === 0;
export const isClaimed = async (run: number) =>
  (await rows("select from $s.run where id = $1 and state = $2", run, runState.claimed)).length > 0;
export const hasEnded = async (run: number) => (await rows("select from $s.run_history where id = $1", run)).length > 0;
/** Repeats `ask` until it resolves with true, with pauses between the calls, because a command may use half a core. */
export const until = async (ask: () => Promise<boolean>, withinMs = 120_000) => {
  const deadline = performance.now() + withinMs;
  while (!(await ask())) {
    if (performance.now() > deadline) throw new Error(`waited ${withinMs} ms in vain for: ${ask}`);
    await sleep(300);
  }
};
export const file = async (name: string, text: string) => {
  await writeFile(join(folder, name), text);
  return name;
};

beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "carillon-cli-")));
  await chmod(folder, 0o755);
  await file("tasks.ts", tasksFile);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

beforeEach(() => {
  schema = `cli_${randomBytes(5).toString("hex")}`;
});
export async function killAll(): Promise<void> {
  for (const one of running) one.signal("SIGKILL");
  await Promise.all(running.map((one) => one.ended()));
  running = [];
}

afterEach(async () => {
  await killAll();
  await rows("drop schema if exists $s cascade");
});
