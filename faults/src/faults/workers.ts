import { setTimeout as pause } from "node:timers/promises";
import { pollPath } from "../../../scheduler/src/api/worker-protocol.ts";
import type { Cluster } from "../cluster.ts";
import { taskNames } from "../workload.ts";
import type { Fault } from "./fault.ts";

const everyMs = 150;
let liars = 0;

/** A malicious remote worker: it speaks the protocol, but reports results for runs of other workers. */
class Liar {
  readonly #cluster: Cluster;
  readonly #server: string;
  session = 0;

  constructor(cluster: Cluster, server: string) {
    this.#cluster = cluster;
    this.#server = server;
  }

  async poll(request: object): Promise<{ session: number; runs: { runId: number; fence: number }[] } | undefined> {
    try {
      const response = await fetch(`${this.#server}${pollPath}`, {
        method: "POST",
        headers: { authorization: `Bearer ${this.#cluster.key}`, "content-type": "application/json" },
        body: JSON.stringify(request),
        signal: AbortSignal.timeout(2_000),
      });
      return response.ok ? ((await response.json()) as { session: number; runs: [] }) : undefined;
    } catch {
      return undefined; // This server is unavailable, which is part of the fault.
    }
  }

  /** Reports success for up to five runs that other workers have or had claimed, with their fences and with fences one lower. */
  async lie(): Promise<void> {
    const rows = await this.#cluster
      .ask<{ id: number; fence: number }>(
        "select id, fence from S.run where fence is not null and session_id is distinct from $1 order by random() limit 5",
        [this.session],
      )
      .catch(() => []); // The store is unavailable.
    const verdicts = rows.flatMap(({ id, fence }) =>
      [fence, fence - 1].map((one) => ({ runId: id, fence: one, outcome: "succeeded" as const, endedAgoMs: 0 })),
    );
    if (verdicts.length > 0) await this.poll({ session: this.session, verdicts });
  }
}

/** Faults that remote workers cause. */
export const workerFaults: readonly Fault[] = [
  {
    name: "liar",
    what: "a remote worker takes runs and is never heard of again; and it says of others' runs that they went well, under their fences and older ones",
    async inflict(cluster, dice) {
      const server = `http://${dice.one(cluster.of("node")).address}`;
      const liar = new Liar(cluster, server);
      const name = `liar-${++liars}`;
      cluster.happened(`${name} joins at ${server}`);
      const joined = await liar.poll({
        join: { name, tasks: taskNames, concurrency: 20, timeoutMs: cluster.sessionTimeoutMs },
      });
      liar.session = joined?.session ?? 0;
      let over = joined === undefined;
      const lying = (async () => {
        if (!over) await liar.poll({ session: liar.session, want: 3, aheadMs: 1_000 });
        while (!over) {
          await liar.lie();
          await pause(everyMs);
        }
      })();
      return async () => {
        over = true;
        await lying;
      };
    },
  },
];
