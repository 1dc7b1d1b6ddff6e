import { afterAll, describe, expect, it } from "vitest";
import { carillon } from "../../src/library/carillon.ts";
import { StandbyPair } from "../support/standby.ts";
import { until } from "../support/store-stage.ts";

describe("a store of two hosts", () => {
  let pair: StandbyPair | undefined;
  afterAll(() => pair?.close());

  it("is written to on the primary, and on the standby once that was promoted", async () => {
    pair = await StandbyPair.start();
    const ended = new Set<number>();
    const tower = carillon({ store: `${pair.url}?target_session_attrs=read-write`, handleSignals: false });
    const task = tower.task("tick", {}, (run) => void ended.add(run.id));
    await tower.start();
    const runs = async (): Promise<void> => {
      const { runId } = await task.enqueue();
      await until("its run to end", () => ended.has(runId));
    };
    try {
      await runs();
      await pair.caughtUp();
      await pair.primary.kill();
      await pair.promote();
      // `npm run bench -- pg-failover` measures how long the failover takes.
      await runs();
    } finally {
      await tower.stop();
    }
  });

  it("is refused with a clear error if none of its hosts accepts writes", async () => {
    const url = "postgres://nobody@127.0.0.1:1,127.0.0.1:2/none";
    const tower = carillon({ store: url, failFast: true, scheduler: false, worker: false, handleSignals: false });
    await expect(tower.start()).rejects.toMatchObject({
      code: "STORE_UNREACHABLE",
      message: expect.stringMatching(/none of the store's 2 hosts.*127\.0\.0\.1:1: .*127\.0\.0\.1:2: /),
    });
    await tower.stop();
  });
});
