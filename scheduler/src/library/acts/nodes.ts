import type { Why } from "../../base/change.ts";
import { pause } from "../../base/clock.ts";
import { parseDuration } from "../../base/duration.ts";
import { CarillonError } from "../../base/errors.ts";
import type { DrainedNode, Holds } from "../../cluster/drain-store.ts";
import type { Member } from "../../cluster/session-store.ts";
import type { ResultOptions } from "../run-handle.ts";
import type { Acting } from "./acting.ts";

export interface DrainOptions extends Why, ResultOptions {}

export interface NodesOptions extends Acting {
  /** Returns the name of this process. */
  own: () => string;
}

const lookMs = 500;

/** Lists, drains and resumes the processes of the cluster, which are identified by their names. */
export class Nodes {
  readonly #options: NodesOptions;

  constructor(options: NodesOptions) {
    this.#options = options;
  }

  /** Returns the live members of the cluster. */
  async list(): Promise<Member[]> {
    const { store } = await this.#options.open();
    return (await store.sessions.members()).members;
  }

  /** Returns the drained nodes, ordered by name. */
  async drained(): Promise<DrainedNode[]> {
    const { store } = await this.#options.open();
    return store.drains.list();
  }

  /**
   * Stops assigning runs to the node and waits until its present runs have ended. The node stays drained until `resume`, even if a process
   * with its name starts again.
   * @param node default: this process
   * @throws NODE_UNKNOWN; RESULT_TIMEOUT if the node still has runs (it stays drained); the signal's reason
   */
  async drain(node = this.#options.own(), { timeout, signal, ...why }: DrainOptions = {}): Promise<void> {
    const { clock } = this.#options;
    const untilMono = timeout === undefined ? Infinity : clock.monotonic() + parseDuration(timeout, "timeout", 1);
    const { store } = await this.#options.open();
    await store.drains.drain(node, this.#options.change(why));
    for (;;) {
      // Waits before the first query too, because a claim that was in progress when the drain began may still give runs to the node.
      await pause(clock, lookMs);
      signal?.throwIfAborted();
      const holds = (await store.drains.list()).find((one) => one.node === node);
      if (!holds?.held) return;
      if (clock.monotonic() >= untilMono) throw notEmpty(node, holds);
    }
  }

  /**
   * Ends a drain, so that the node gets runs again.
   * @param node default: this process
   * @returns false if the node was not drained
   * @throws NODE_UNKNOWN
   */
  async resume(node = this.#options.own(), why: Why = {}): Promise<boolean> {
    const { store } = await this.#options.open();
    return (await store.drains.resume(node, this.#options.change(why))).changed;
  }
}

function notEmpty(node: string, { held, runs }: Holds): CarillonError {
  const named = runs.map(({ task, run }) => `${task} ${run}`).join(", ");
  return new CarillonError("RESULT_TIMEOUT", `node ${node} still has ${held} runs: ${named}`, {
    hint: "It stays drained: wait on by the same call, or cancel them.",
  });
}
