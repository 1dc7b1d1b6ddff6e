import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { NodeOrder } from "./node.ts";
import { Trouble } from "./options.ts";

/** A node that has not stopped after this many ms is killed. A clean stop waits for the node's runs, which take well under a second. */
const stopMs = 20_000;

interface Node {
  child: ChildProcess;
  exited: Promise<void>;
  /** True if the demo itself stopped or killed the process. */
  expected: boolean;
}

/** The demo's nodes, each in a process of its own; they are stopped when the demo ends. */
export class Processes {
  readonly #nodes = new Map<string, Node>();
  readonly #onUnexpectedEnd: (trouble: Trouble) => void;

  constructor(onUnexpectedEnd: (trouble: Trouble) => void) {
    this.#onUnexpectedEnd = onUnexpectedEnd;
  }

  pid(name: string): number | undefined {
    return this.#nodes.get(name)?.child.pid;
  }

  /** Starts a node; resolves when it has joined the cluster or its process has ended. */
  async start(order: NodeOrder): Promise<void> {
    // The child gets a process session of its own, so that Ctrl-C reaches only the demo's process, which then stops its nodes gracefully.
    const child = fork(fileURLToPath(new URL("node.js", import.meta.url)), [JSON.stringify(order)], {
      detached: true,
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    const node = { child, exited, expected: false };
    this.#nodes.set(order.name, node);
    const ready = new Promise<void>((resolve) => child.once("message", () => resolve()));
    const ended = exited.then(() => {
      this.#nodes.delete(order.name);
      const { exitCode, signalCode } = child;
      if (!node.expected)
        this.#onUnexpectedEnd(new Trouble(`${order.name} ended by itself (${signalCode ?? `exit code ${exitCode}`})`));
    });
    await Promise.race([ready, ended]);
  }

  /** Kills a node (kill -9); resolves when its process has ended. */
  async kill(name: string): Promise<void> {
    const node = this.#nodes.get(name);
    if (!node) return;
    node.expected = true;
    node.child.kill("SIGKILL");
    await node.exited;
  }

  /** Stops all nodes gracefully. @throws Trouble if a node was killed after the time limit, or its exit code was not 0 */
  async stopAll(): Promise<void> {
    const stopped = await Promise.all([...this.#nodes].map(([name, node]) => this.#stop(name, node)));
    const unclean = stopped.filter((how) => how !== undefined);
    if (unclean.length > 0) throw new Trouble(unclean.join("; "));
  }

  async #stop(name: string, node: Node): Promise<string | undefined> {
    node.expected = true;
    const { child } = node;
    if (child.connected) child.disconnect();
    const late = setTimeout(() => child.kill("SIGKILL"), stopMs);
    await node.exited;
    clearTimeout(late);
    return child.exitCode === 0
      ? undefined
      : `${name} did not stop cleanly (${child.signalCode ?? `exit code ${child.exitCode}`})`;
  }
}
