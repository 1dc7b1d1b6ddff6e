import { type ChildProcess, fork } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { mortal } from "@carillon/zookeeper/testing";
import type { Line } from "./line.ts";
import type { Act, Asked, Order, Told } from "./order.ts";

const program = fileURLToPath(new URL("subject.js", import.meta.url));
const patienceMs = 90_000;

export type Done = Extract<Told, { kind: "done" }>;

export interface MemberOptions {
  readonly order: Omit<Order, "life">;
  readonly store: Line | undefined;
  readonly coordination: readonly Line[];
  readonly servers: readonly Line[];
  /** Adds an event to the history. */
  readonly happened: (what: string) => void;
  /** Called if the process ended although the harness did not end it. */
  readonly unexpected: (what: string) => void;
}

/** One process under test with its restarts, and its proxied connections. */
export class Member {
  readonly name: string;
  readonly store: Line | undefined;
  readonly coordination: readonly Line[];
  readonly servers: readonly Line[];
  readonly #options: MemberOptions;
  readonly #asked = new Map<string, (done: Done | undefined) => void>();
  #child: ChildProcess | undefined;
  #life = 0;
  #ending = false;
  #started = false;
  #paused = false;

  constructor(options: MemberOptions) {
    this.#options = options;
    this.name = options.order.name;
    this.store = options.store;
    this.coordination = options.coordination;
    this.servers = options.servers;
  }

  get role(): Order["role"] {
    return this.#options.order.role;
  }

  get alive(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  get paused(): boolean {
    return this.#paused;
  }

  /** True if the process runs, has joined, and the harness is not stopping it. */
  get able(): boolean {
    return this.alive && this.#started && !this.#ending;
  }

  /** For a node: the address on which it listens for remote workers. */
  get address(): string | undefined {
    return this.#options.order.listen;
  }

  get pid(): number {
    return this.#child?.pid ?? Number.NaN;
  }

  get lines(): readonly Line[] {
    return [...(this.store ? [this.store] : []), ...this.coordination, ...this.servers];
  }

  /** Starts a new process; `joined` waits until it has joined. */
  begin(): void {
    this.#life++;
    this.#ending = this.#started = false;
    this.#options.happened(`${this.name} begins its life ${this.#life}`);
    const order: Order = { ...this.#options.order, life: this.#life };
    const child = mortal(fork(program, [JSON.stringify(order)], { stdio: ["ignore", 2, 2, "ipc"] }));
    this.#child = child;
    child.on("message", (told: Told) => {
      if (told.kind === "started") this.#started = true;
      if (told.kind === "done") this.#answer(told.id, told);
    });
    // The channel breaks when the process ends; the exit event below handles that.
    child.on("error", () => undefined);
    child.once("exit", (code, signal) => {
      if (this.#child === child) this.#started = this.#paused = false;
      if (!this.#ending && this.#child === child)
        this.#options.unexpected(`${this.name} ended by itself with ${signal ?? code}`);
      for (const id of [...this.#asked.keys()]) this.#answer(id, undefined);
    });
  }

  /** Resolves when the process has joined. @throws after a time limit */
  async joined(): Promise<void> {
    const deadline = performance.now() + patienceMs;
    while (!this.#started) {
      if (performance.now() > deadline) throw new Error(`${this.name} did not join within ${patienceMs} ms`);
      await pause(20);
    }
  }

  /** Sends the process a request. @returns undefined if the process ended before it answered */
  async do(id: string, act: Act): Promise<Done | undefined> {
    return new Promise((resolve) => {
      this.#asked.set(id, resolve);
      this.tell({ kind: "do", id, act });
    });
  }

  tell(asked: Asked): void {
    // A message to a process that has just died is lost; the exit handler resolves the pending requests.
    if (this.#child?.connected) this.#child.send(asked, () => undefined);
  }

  async kill(forMs: number): Promise<void> {
    if (!this.alive) return;
    this.#ending = true;
    this.#options.happened(`${this.name} is killed, for ${Math.round(forMs)} ms`);
    await this.end();
  }

  /** Kills the process; resolves when it has ended. */
  async end(): Promise<void> {
    const child = this.#child;
    this.#ending = true;
    if (!this.alive || !child) return;
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await gone;
  }

  /** Stops the process gracefully, and kills it after 20 s, because a graceful stop waits for an unreachable store. */
  async stop(): Promise<void> {
    const child = this.#child;
    if (!this.alive || !child) return;
    this.#ending = true;
    this.#options.happened(`${this.name} is stopped, and started again`);
    const gone = new Promise((resolve) => child.once("exit", resolve));
    this.tell({ kind: "stop" });
    const late = await Promise.race([gone.then(() => false), pause(20_000, true)]);
    if (late) this.#options.happened(`${this.name} is killed, for it did not stop in time`);
    if (late) await this.end();
  }

  /** Stops the process with SIGSTOP; resolves when /proc shows that it is stopped or has ended, without /proc at once. */
  async stand(forMs: number): Promise<void> {
    if (!this.alive || this.#paused) return;
    this.#paused = true;
    this.#options.happened(`${this.name} stands still for ${Math.round(forMs)} ms`);
    this.#child?.kill("SIGSTOP");
    while (this.alive && this.#paused && !isStopped(this.pid)) await pause(1);
  }

  goOn(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#options.happened(`${this.name} goes on`);
    this.#child?.kill("SIGCONT");
  }

  block(ms: number): void {
    this.#options.happened(`${this.name} stands still for ${Math.round(ms)} ms: its event loop is blocked`);
    this.tell({ kind: "block", ms });
  }

  async close(): Promise<void> {
    await this.end();
    await Promise.all(this.lines.map((line) => line.close()));
  }

  #answer(id: string, done: Done | undefined): void {
    const resolve = this.#asked.get(id);
    this.#asked.delete(id);
    resolve?.(done);
  }
}

/** Returns true if the process is stopped or has ended, according to /proc. Without /proc the signal is assumed to have arrived. */
function isStopped(pid: number): boolean {
  const path = `/proc/${pid}/stat`;
  if (!existsSync("/proc/self/stat")) return true;
  if (!existsSync(path)) return true; // The process has ended.
  const stat = readFileSync(path, "latin1");
  return stat.slice(stat.lastIndexOf(")") + 2)[0] === "T";
}
