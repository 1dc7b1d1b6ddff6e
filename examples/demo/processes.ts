import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { NodeOrder } from "./node.ts";
import { Trouble } from "./options.ts";

/** A clean end waits for the runs under way, which here takes well under a second. */
const stopMs = 20_000;

interface Node {
  child: ChildProcess;
  exited: Promise<void>;
  /** True if the demo itself ended the process. */
  expected: boolean;
}

/** The demo's nodes: processes of their own, ended with it. */
export class Processes {
  readonly #nodes = new Map<string, Node>();
  readonly #onUnexpectedEnd: (trouble: Trouble) => void;

  constructor(onUnexpectedEnd: (trouble: Trouble) => void) {
    this.#onUnexpectedEnd = onUnexpectedEnd;
  }

  pid(name: string): number | undefined {
    return this.#nodes.get(name)?.child.pid;
  }

  /** Resolves when it has joined the cluster. */
  async start(order: NodeOrder): Promise<void> {
    // The child gets its own session, so that Ctrl-C reaches only the demo, which then stops its nodes gracefully.
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

  /** kill -9. Resolves when the process is gone. */
  async kill(name: string): Promise<void> {
    const node = this.#nodes.get(name);
    if (!node) return;
    node.expected = true;
    node.child.kill("SIGKILL");
    await node.exited;
  }

  /** Stops all in order. @throws Trouble when one did not end in time, or not with exit code 0 */
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
