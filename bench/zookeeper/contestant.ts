import { execFile } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { NodeClient, Order, Outcome } from "./order.ts";

/** A client under test; `run` executes one order in a fresh process. */
export interface Contestant {
  name: string;
  run(order: Omit<Order, "client">): Promise<Outcome>;
}

const run = promisify(execFile);
const patienceMs = 300_000;

export function nodeClient(client: NodeClient): Contestant {
  const program = fileURLToPath(new URL("./subject.js", import.meta.url));
  const options = (process.env.CARILLON_BENCH_NODE_OPTIONS ?? "").split(" ").filter(Boolean);
  return {
    name: client,
    run: async (order) => {
      const words = [...options, program, JSON.stringify({ ...order, client } satisfies Order)];
      // Only the last line is the result, because the native client prints to the same output.
      const { stdout } = await run(process.execPath, words, { timeout: patienceMs, killSignal: "SIGKILL" });
      return JSON.parse(stdout.trim().split("\n").at(-1) ?? "") as Outcome;
    },
  };
}

/** Compiles the plain Java client. @throws if the variables that name Java and the jars are not set, or if javac fails */
export async function javaClient(): Promise<Contestant> {
  const told = (variable: string) => {
    const value = process.env[variable];
    if (value) return value;
    throw new Error(`${variable} is not set: start this by \`npm run bench\`, or say --no-peers`);
  };
  const [java, jars] = [told("CARILLON_TEST_ZOOKEEPER_JAVA"), told("CARILLON_TEST_ZOOKEEPER_CLASSPATH")];
  const source = fileURLToPath(new URL("../../zookeeper/java/ClientBench.java", import.meta.url));
  const classes = fileURLToPath(new URL("./java", import.meta.url));
  mkdirSync(classes, { recursive: true });
  await run(join(java, "javac"), ["-nowarn", "-d", classes, "-cp", jars, source]);
  return {
    name: "java",
    run: async ({ url, path, operation, window, count, warmUp, bytes }) => {
      const words = [url, path, operation, window, count, warmUp, bytes].map(String);
      const settings = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", `${classes}:${jars}`];
      const { stdout } = await run(join(java, "java"), [...settings, "ClientBench", ...words], {
        timeout: patienceMs,
        killSignal: "SIGKILL",
      });
      const [, , perSecond, cpuUsPerOperation, p50Us, p99Us] = stdout.trim().split(" ").map(Number);
      if (!perSecond || !cpuUsPerOperation) throw new Error(`the Java client said ${stdout}`);
      return { perSecond, cpuUsPerOperation, p50Us, p99Us };
    },
  };
}
