import { type ChildProcessByStdio, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { type Start, startsOf } from "../measure/starts.ts";
import type { Order } from "./order.ts";

/** Path of the Java source file; the `java` command compiles it at each start. */
const program = fileURLToPath(new URL("../../delay-queue/java/Consumer.java", import.meta.url));
const startMs = 30_000;
const endMs = 5_000;

function told(variable: string): string {
  const value = process.env[variable];
  if (value) return value;
  throw new Error(`${variable} is not set: install Java Curator, start this by \`npm run bench\`, or say --no-peers`);
}

/** Java Curator's delay queue in a process of its own. */
export class Curator {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #exit: Promise<void>;
  readonly #notes: number[] = [];

  private constructor(child: ChildProcessByStdio<Writable, Readable, null>) {
    this.#child = child;
    this.#exit = new Promise((resolve) => child.once("close", () => resolve()));
    child.stdin.on("error", () => undefined); // A write fails only when the process has ended; its exit code gives the reason.
  }

  /** @param juteMaxBuffer the maximum size of a reply in bytes; undefined: Java's default */
  static async start({ url, path, lockPath }: Order, juteMaxBuffer: number | undefined): Promise<Curator> {
    const classpath = told("CARILLON_TEST_ZOOKEEPER_CURATOR_CLASSPATH");
    const settings = juteMaxBuffer === undefined ? [] : [`-Djute.maxbuffer=${juteMaxBuffer}`];
    const log = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off";
    const child = spawn(
      join(told("CARILLON_TEST_ZOOKEEPER_JAVA"), "java"),
      ["-Xmx2g", log, ...settings, "-cp", classpath, program, url, path, lockPath, "32"],
      { stdio: ["pipe", "pipe", "ignore"] },
    );
    const curator = new Curator(child);
    const lines = createInterface({ input: child.stdout });
    const started = new Promise<boolean>((resolve) => {
      lines.on("line", (line) => {
        if (line === "started") resolve(true);
        else curator.#notes.push(...line.split(" ").map(Number));
      });
    });
    const late = setTimeout(() => child.kill("SIGKILL"), startMs);
    const up = await Promise.race([started, curator.#exit.then(() => false)]);
    clearTimeout(late);
    if (!up) throw new Error("Java Curator did not start");
    return curator;
  }

  /** The starts that the consumer has printed so far. */
  get starts(): Start[] {
    return startsOf(Float64Array.from(this.#notes));
  }

  /** The peak memory of the process in bytes; NaN if the kernel does not state it. @throws if the process no longer exists */
  rssBytes(): number {
    const status = readFileSync(`/proc/${this.#child.pid}/status`, "utf8");
    return Number(/VmHWM:\s*(\d+) kB/.exec(status)?.[1] ?? Number.NaN) * 1024;
  }

  async stop(): Promise<void> {
    this.#child.stdin.end();
    const late = setTimeout(() => this.#child.kill("SIGKILL"), endMs);
    await this.#exit;
    clearTimeout(late);
  }
}
