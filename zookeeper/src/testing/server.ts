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
 * Waits until all threads of a process are stopped: SIGSTOP stops one thread after another, and a server with one running thread would
 * still answer. This is checked only on Linux, which shows the threads' states. @throws if a thread still runs after some seconds
 */
function awaitStopped(pid: number): void {
  const tasks = `/proc/${pid}/task`;
  if (!existsSync(tasks)) return;
  const nap = new Int32Array(new SharedArrayBuffer(4));
  for (let tries = 0; tries < 5_000; tries++) {
    // The state follows the last parenthesis, after the program's name, which may contain any character.
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
  /** The TLS port; undefined without TLS. */
  readonly securePort?: number;
  /** Settings of the server's zoo.cfg besides ports and folders. */
  readonly config: Readonly<Record<string, string | number | boolean>>;
  /** Java's system properties. */
  readonly properties: Readonly<Record<string, string | number>>;
  /** The memory limit in the form of Java's -Xmx. */
  readonly heap: string;
  /** The path of the Java program. */
  readonly java: string;
  /** The server's jars as a class path. */
  readonly jars: string;
  /** A proxy to which clients connect instead of the server's port, so that `partition` can cut them off; undefined without one. */
  readonly front: TcpProxy | undefined;
}

/** The longest wait for a start, in ms. Java normally starts within a second, but needs longer on a busy machine. */
const patienceMs = 60_000;

/** Java options for a short-lived process: no optimising compiler, one garbage-collector thread. */
const quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"];

/** One ZooKeeper server for tests: a Java process that can be killed, stopped, continued, restarted and wiped. */
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

  /** `host:port` for clients: that of the proxy if there is one. */
  get address(): string {
    return this.#plan.front?.address ?? `127.0.0.1:${this.port}`;
  }

  /** True if the server's process exists, even if it is frozen. */
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

  /** Starts the process; `ready` waits until the server serves clients. @throws if the process runs already */
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
    const program = ["org.apache.zookeeper.server.quorum.QuorumPeerMain", file]; // without peers it runs standalone
    const log = openSync(this.#log, "a");
    this.#child = mortal(
      spawn(this.#plan.java, [...quick, `-Xmx${this.#plan.heap}`, ...properties, "-cp", this.#plan.jars, ...program], {
        cwd: this.#plan.folder,
        stdio: ["ignore", log, log],
        detached: true, // otherwise Ctrl-C would end this process before the tests end it
      }),
    );
    this.#child.once("error", (error) => {
      this.#failure = String(error); // the program cannot be run; `ready` reports the error
    });
    this.#child.unref();
    closeSync(log);
    this.#frozen = false;
  }

  async start(): Promise<void> {
    this.spawn();
    await this.ready();
  }

  /** Waits until the server serves clients. @throws with the end of the log if the process ends, or does not serve within a minute */
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

  /** Kills the process by SIGKILL; resolves once it has ended. */
  kill(): Promise<void> {
    return this.#end("SIGKILL");
  }

  /** Ends the process gracefully by SIGTERM; resolves once it has ended. */
  stop(): Promise<void> {
    return this.#end("SIGTERM");
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (!this.alive || child === undefined) return;
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    if (this.#frozen) child.kill("SIGCONT"); // a stopped process reacts only to SIGKILL
    await gone;
    this.#frozen = false;
  }

  /**
   * Cuts this server off from its clients, like a network that loses all packets: existing and new connections stay open but silent. The
   * server can still reach the other servers. @throws if the ensemble was started without `partitions`
   */
  partition(direction: Direction = "both"): void {
    this.#front.pause(direction);
  }

  /** Ends a partition. Held bytes are then forwarded, as if TCP had sent them again. */
  heal(): void {
    this.#front.resume();
  }

  get #front(): TcpProxy {
    if (this.#plan.front) return this.#plan.front;
    throw new Error("the ensemble was started without the option `partitions`");
  }

  /**
   * Stops the process by SIGSTOP, so that its connections stay open. When this returns on Linux, none of its threads is running.
   */
  freeze(): void {
    process.kill(this.pid, "SIGSTOP");
    this.#frozen = true;
    awaitStopped(this.pid);
  }

  /** Continues a frozen process by SIGCONT. */
  thaw(): void {
    process.kill(this.pid, "SIGCONT");
    this.#frozen = false;
  }

  /** Kills the process and starts a new one with the same data. Waits until the server serves clients; in an ensemble it needs a quorum. */
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
      return undefined; // the server is starting or has ended
    }
  }

  async connections(): Promise<readonly Connection[]> {
    return connectionsIn(await this.ask("cons"));
  }

  /** Returns the sessions (`0x…`) that own ephemeral nodes, with the nodes of each. */
  async ephemerals(): Promise<ReadonlyMap<string, readonly string[]>> {
    return ephemeralsIn(await this.ask("dump"));
  }

  /** Returns the paths that this server's clients watch, with the sessions (`0x…`) that watch each. */
  async watched(): Promise<ReadonlyMap<string, readonly string[]>> {
    return watchedIn(await this.ask("wchp"));
  }

  /** Returns the server's `mntr` counters without the prefix `zk_`: packets_received, watch_count, ephemerals_count, znode_count… */
  async counters(): Promise<ReadonlyMap<string, number>> {
    return countersIn(await this.ask("mntr"));
  }

  log(): string {
    return existsSync(this.#log) ? readFileSync(this.#log, "utf8") : "";
  }

  /**
   * Returns the last errors and exceptions of the log, and its last lines. The last lines alone may contain only requests that arrived
   * before the server was ready.
   */
  logEnd(): string {
    const log = this.log();
    const complaints = log.split("\n").filter((line) => /Exception|ERROR/.test(line) && !/not running/.test(line));
    return [this.#failure, ...complaints.slice(-12), "…", log.slice(-1_500)].join("\n");
  }
}
