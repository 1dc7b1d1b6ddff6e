import { afterAll, describe, expect, it } from "vitest";
import { carillon } from "../../src/library/carillon.ts";
import { StandbyPair } from "../support/standby.ts";

describe("a store of two hosts", () => {
  let pair: StandbyPair | undefined;
  afterAll(() => pair?.close());

  it("is written to on the primary, and soon on the standby that was promoted", async () => {
    pair = await StandbyPair.start();
    const ended = new Set<number>();
    const waiting = new Map<number, () => void>();
    const tower = carillon({ store: `${pair.url}?target_session_attrs=read-write`, handleSignals: false });
    const task = tower.task("tick", {}, (run) => {
      ended.add(run.id);
      waiting.get(run.id)?.();
    });
    await tower.start();
    const runs = async (): Promise<void> => {
      const { runId } = await task.enqueue();
      if (!ended.has(runId)) await new Promise<void>((resolve) => waiting.set(runId, resolve));
    };
    try {
      await runs();
      await pair.caughtUp();
      await pair.primary.kill();
      await pair.promote();
      const promotedMs = performance.now();
      await runs();
      // How soon, on a machine at rest, is for `npm run bench -- pg-failover` to say. Here: it does not wait for a connection to time out.
      expect(performance.now() - promotedMs).toBeLessThan(20_000);
    } finally {
      await tower.stop();
    }
  });

  it("is refused in words when none of its hosts accepts writes", async () => {
    const url = "postgres://nobody@127.0.0.1:1,127.0.0.1:2/none";
    const tower = carillon({ store: url, failFast: true, scheduler: false, worker: false, handleSignals: false });
    await expect(tower.start()).rejects.toMatchObject({
      code: "STORE_UNREACHABLE",
      message: expect.stringMatching(/none of the store's 2 hosts.*127\.0\.0\.1:1: .*127\.0\.0\.1:2: /),
    });
    await tower.stop();
  });
});
