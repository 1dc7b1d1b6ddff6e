import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "@carillon/zookeeper/testing";
import { Redis } from "ioredis";

/** A Redis server for one test, which can be stopped, wiped and reconfigured, unlike the shared server. */
export class RedisServer {
  readonly port: number;
  readonly #args: readonly string[];
  readonly #folder: string;
  #child: ChildProcess | undefined;

  private constructor(port: number, args: readonly string[], folder: string) {
    this.port = port;
    this.#args = args;
    this.#folder = folder;
  }

  static async start(args: readonly string[] = []): Promise<RedisServer> {
    const folder = mkdtempSync(join(tmpdir(), "carillon-redis-"));
    for (let attempt = 1; ; attempt++) {
      const server = new RedisServer(await freePort(), args, folder);
      try {
        await server.up();
        return server;
      } catch (error) {
        if (attempt === 5) throw error; // another process has taken the port meanwhile
      }
    }
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Starts the server, also again at the same address; then its data is lost, unless its arguments make it durable. */
  async up(): Promise<void> {
    const program = process.env.CARILLON_TEST_REDIS_SERVER;
    if (!program) throw new Error("CARILLON_TEST_REDIS_SERVER is not set: run the tests with `npm test`");
    const place = ["--port", `${this.port}`, "--bind", "127.0.0.1", "--dir", this.#folder, "--save", ""];
    // A Sentinel needs a configuration file, whose path must be the first argument.
    const [first = "", ...rest] = this.#args;
    const args = first.endsWith(".conf") ? [first, ...place.slice(0, 4), ...rest] : [...place, ...this.#args];
    const child = spawn(program, args, { cwd: this.#folder, stdio: ["ignore", "pipe", "pipe"] });
    this.#child = child;
    let output = "";
    await new Promise<void>((resolve, reject) => {
      child.on("error", reject);
      child.on("exit", (code, signal) => reject(new Error(`redis-server ended with ${code ?? signal}:\n${output}`)));
      for (const stream of [child.stdout, child.stderr]) {
        stream?.setEncoding("utf8").on("data", (text) => {
          output = (output + text).slice(-10_000);
          if (/Ready to accept connections|Sentinel ID is/.test(output)) resolve();
        });
      }
    });
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await gone;
  }

  /** Sends a command on a new connection. @returns the reply */
  async ask(command: string, ...args: (string | number)[]): Promise<unknown> {
    const redis = new Redis(this.port, "127.0.0.1", { lazyConnect: true, maxRetriesPerRequest: 1 });
    redis.on("error", () => undefined); // the command itself rejects
    try {
      return await redis.call(command, ...args);
    } finally {
      redis.disconnect();
    }
  }

  async close(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
