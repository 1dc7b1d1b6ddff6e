import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { mortal } from "./afterlife.ts";
import {
  type Connection,
  connectionsIn,
  countersIn,
  ephemeralsIn,
  fourLetter,
  type Mode,
  modeIn,
  watchedIn,
} from "./four-letter.ts";
import type { Direction, TcpProxy } from "./tcp-proxy.ts";

/**
 * Waits until all threads of a process are stopped. SIGSTOP takes effect thread by thread, and a server with one running thread
 * would still answer. Linux shows the threads' states; on other systems there is no check.
 */
function awaitStopped(pid: number): void {
  const tasks = `/proc/${pid}/task`;
  if (!existsSync(tasks)) return;
  const nap = new Int32Array(new SharedArrayBuffer(4));
  for (let tries = 0; tries < 5_000; tries++) {
    // The state follows the program's name in parentheses; the name may contain any character.
    const states = readdirSync(tasks).map((task) => {
      const stat = readFileSync(`${tasks}/${task}/stat`, "latin1");
      return stat.slice(stat.lastIndexOf(")") + 2)[0];
    });
    if (states.every((state) => state === "T")) return;
    Atomics.wait(nap, 0, 0, 1);
  }
  throw new Error(`process ${pid} does not stop`);
}

export interface ServerPlan {
  readonly id: number;
  readonly folder: string;
  readonly port: number;
  /** The port for TLS, if the server has one. */
  readonly securePort?: number;
  /** Lines of the server's zoo.cfg besides ports and folders. */
  readonly config: Readonly<Record<string, string | number | boolean>>;
  /** Java's system properties. */
  readonly properties: Readonly<Record<string, string | number>>;
  /** The memory limit in the form of Java's -Xmx. */
  readonly heap: string;
  /** The path of the Java program. */
  readonly java: string;
  /** The server's jars, as a class path. */
  readonly jars: string;
  /** The proxy that clients connect to instead of the server's port, so that `partition` can cut them off. */
  readonly front: TcpProxy | undefined;
}

/** The longest wait for a start, in ms. Java normally starts within a second, but a busy machine takes longer. */
const patienceMs = 60_000;

/** Java options for a short-lived process: no optimising compiler, one garbage-collector thread. */
const quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"];

/** One ZooKeeper server of a test: a Java process that can be killed, stopped, continued, restarted and wiped. */
export class ZooKeeperServer {
  readonly id: number;
  readonly port: number;
  readonly securePort: number | undefined;
  readonly #plan: ServerPlan;
  readonly #data: string;
  readonly #log: string;
  #child: ChildProcess | undefined;
  #frozen = false;
  #failure = "";

  constructor(plan: ServerPlan) {
    this.id = plan.id;
    this.port = plan.port;
    this.securePort = plan.securePort;
    this.#plan = plan;
    this.#data = join(plan.folder, "data");
    this.#log = join(plan.folder, "log");
  }

  /** `host:port` for clients. */
  get address(): string {
    return this.#plan.front?.address ?? `127.0.0.1:${this.port}`;
  }

  /** True if the server's process exists, frozen or not. */
  get alive(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  get frozen(): boolean {
    return this.#frozen;
  }

  get pid(): number {
    if (!this.alive || this.#child?.pid === undefined) throw new Error(`server ${this.id} does not run`);
    return this.#child.pid;
  }

  /** Starts the process; `ready` waits until the server serves clients. */
  spawn(): void {
    if (this.alive) throw new Error(`server ${this.id} runs already`);
    mkdirSync(this.#data, { recursive: true });
    writeFileSync(join(this.#data, "myid"), `${this.id}\n`);
    const file = join(this.#plan.folder, "zoo.cfg");
    const config = {
      dataDir: this.#data,
      clientPort: this.port,
      clientPortAddress: "127.0.0.1",
      ...(this.securePort === undefined
        ? {}
        : { secureClientPort: this.securePort, secureClientPortAddress: "127.0.0.1" }),
      ...this.#plan.config,
    };
    const lines = Object.entries(config).map(([name, value]) => `${name}=${value}\n`);
    writeFileSync(file, lines.join(""));
    const properties = Object.entries(this.#plan.properties).map(([name, value]) => `-D${name}=${value}`);
    const program = ["org.apache.zookeeper.server.quorum.QuorumPeerMain", file]; // runs standalone if there are no peers
    const log = openSync(this.#log, "a");
    this.#child = mortal(
      spawn(this.#plan.java, [...quick, `-Xmx${this.#plan.heap}`, ...properties, "-cp", this.#plan.jars, ...program], {
        cwd: this.#plan.folder,
        stdio: ["ignore", log, log],
        detached: true, // Ctrl-C must reach only the tests, which then end this process
      }),
    );
    this.#child.once("error", (error) => {
      this.#failure = String(error); // the program cannot be run: `ready` reports it
    });
    this.#child.unref();
    closeSync(log);
    this.#frozen = false;
  }

  async start(): Promise<void> {
    this.spawn();
    await this.ready();
  }

  /**
   * Waits until the server serves clients. @throws, with the end of the log, if the process ended or does not serve within a minute
   */
  async ready(): Promise<Mode> {
    const deadline = performance.now() + patienceMs;
    for (;;) {
      const mode = await this.mode();
      if (mode !== undefined) return mode;
      if (!this.alive) throw new Error(`server ${this.id} ended before it was ready:\n${this.logEnd()}`);
      if (performance.now() > deadline) throw new Error(`server ${this.id} does not serve:\n${this.logEnd()}`);
      await sleep(30);
    }
  }

  /** kill -9; resolves once the process is gone. */
  kill(): Promise<void> {
    return this.#end("SIGKILL");
  }

  /** An orderly end (SIGTERM); resolves once the process is gone. */
  stop(): Promise<void> {
    return this.#end("SIGTERM");
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (!this.alive || child === undefined) return;
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    if (this.#frozen) child.kill("SIGCONT"); // only SIGKILL ends a stopped process
    await gone;
    this.#frozen = false;
  }

  /**
   * Cuts this server off from its clients, like a network that loses all packets: existing and new connections stay open but
   * silent. It still reaches the other servers. @throws unless the ensemble was started with `partitions`
   */
  partition(direction: Direction = "both"): void {
    this.#front.pause(direction);
  }

  /** Ends `partition`: held bytes arrive, as if TCP had sent them again. */
  heal(): void {
    this.#front.resume();
  }

  get #front(): TcpProxy {
    if (this.#plan.front) return this.#plan.front;
    throw new Error("the ensemble was started without the option `partitions`");
  }

  /** Stops the process with SIGSTOP, so that its connections stay open. When this returns, none of its threads runs. */
  freeze(): void {
    process.kill(this.pid, "SIGSTOP");
    this.#frozen = true;
    awaitStopped(this.pid);
  }

  /** Continues the process after `freeze` (SIGCONT). */
  thaw(): void {
    process.kill(this.pid, "SIGCONT");
    this.#frozen = false;
  }

  /** Kills the process (kill -9) and starts a new one with the same data; waits until it serves clients, which needs a quorum. */
  async restart(): Promise<void> {
    await this.kill();
    await this.start();
  }

  /** Kills the server and closes its proxy. */
  async close(): Promise<void> {
    await this.kill();
    await this.#plan.front?.close();
  }

  /** Deletes the server's data. The server must not run. */
  wipe(): void {
    if (this.alive) throw new Error(`server ${this.id} runs: kill it before wiping its data`);
    rmSync(this.#data, { recursive: true, force: true });
  }

  /** Sends a four-letter word and returns the answer. */
  ask(word: string): Promise<string> {
    return fourLetter(this.port, word);
  }

  /** The server's mode; undefined if it serves no clients because it is down, frozen, starting or without a quorum. */
  async mode(): Promise<Mode | undefined> {
    if (!this.alive || this.#frozen) return undefined;
    try {
      return modeIn(await this.ask("srvr"));
    } catch {
      return undefined; // the server does not listen yet, or no longer
    }
  }

  async connections(): Promise<readonly Connection[]> {
    return connectionsIn(await this.ask("cons"));
  }

  /** The sessions (`0x…`) that own ephemeral nodes, with the nodes of each. */
  async ephemerals(): Promise<ReadonlyMap<string, readonly string[]>> {
    return ephemeralsIn(await this.ask("dump"));
  }

  /** The paths that clients of this server watch, with the sessions (`0x…`) that watch each. */
  async watched(): Promise<ReadonlyMap<string, readonly string[]>> {
    return watchedIn(await this.ask("wchp"));
  }

  /** The server's `mntr` counters without the prefix `zk_`: packets_received, watch_count, ephemerals_count, znode_count… */
  async counters(): Promise<ReadonlyMap<string, number>> {
    return countersIn(await this.ask("mntr"));
  }

  log(): string {
    return existsSync(this.#log) ? readFileSync(this.#log, "utf8") : "";
  }

  /**
   * The last errors and exceptions, and the last lines, of the log. The last lines alone may hold only requests that came before the
   * server was ready.
   */
  logEnd(): string {
    const log = this.log();
    const complaints = log.split("\n").filter((line) => /Exception|ERROR/.test(line) && !/not running/.test(line));
    return [this.#failure, ...complaints.slice(-12), "…", log.slice(-1_500)].join("\n");
  }
}
