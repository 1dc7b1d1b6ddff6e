import { type ChildProcess, fork } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { FaultProxy } from "../measure/fault-proxy.ts";
import type { Order, Told } from "./order.ts";

export interface NodePlan extends Omit<Order, "store" | "coordination"> {
  storeUrl: string;
  coordinationUrl?: string;
}

const startMs = 60_000;

/** A node in a process of its own. It reaches the store and the coordination service through its own proxies. */
export class BenchNode {
  readonly name: string;
  readonly store: FaultProxy;
  readonly coordination: FaultProxy | undefined;
  readonly #child: ChildProcess;
  readonly #ended: Promise<string>;

  private constructor(plan: NodePlan, store: FaultProxy, coordination: FaultProxy | undefined) {
    this.name = plan.name;
    this.store = store;
    this.coordination = coordination;
    const order: Order = { ...plan, store: store.url, coordination: coordination?.url };
    this.#child = fork(new URL("./subject.js", import.meta.url), [JSON.stringify(order)], {
      stdio: ["ignore", 2, 2, "ipc"],
      execArgv: (process.env.CARILLON_BENCH_NODE_OPTIONS ?? "").split(" ").filter(Boolean),
    });
    this.#ended = new Promise((resolve) => {
      this.#child.once("exit", (code, signal) => resolve(String(signal ?? code)));
    });
  }

  /** Starts the process; resolves when the node has joined the cluster. */
  static async start(plan: NodePlan): Promise<BenchNode> {
    const store = await FaultProxy.before(plan.storeUrl);
    const coordination = plan.coordinationUrl ? await FaultProxy.before(plan.coordinationUrl) : undefined;
    const node = new BenchNode(plan, store, coordination);
    await node.#told("started", startMs);
    return node;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Stops the node gracefully: it finishes its runs and hands the leadership over before it exits. */
  async stop(): Promise<void> {
    const told = this.#told("stopped", startMs);
    this.#child.send("stop");
    await told;
    await this.close();
  }

  /** Kills the process if it still runs, and closes the proxies. */
  async close(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#ended;
    await Promise.all([this.store.close(), this.coordination?.close()]);
  }

  async #told(kind: Told["kind"], withinMs: number): Promise<void> {
    const told = new Promise<void>((resolve) => {
      const listen = (message: Told) => {
        if (message.kind !== kind) return;
        this.#child.off("message", listen);
        resolve();
      };
      this.#child.on("message", listen);
    });
    const over = new AbortController();
    const late = pause(withinMs, `was not ${kind} within ${withinMs} ms`, { signal: over.signal });
    late.catch(() => undefined); // The rejection by the abort below is expected.
    const ended = this.#ended.then((exit) => `ended with ${exit} before it was ${kind}`);
    const trouble = await Promise.race([told, ended, late]);
    over.abort();
    if (trouble !== undefined) throw new Error(`the node ${this.name} ${trouble}`);
  }
}
