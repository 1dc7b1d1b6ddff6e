import { GraceLock } from "@carillon/zookeeper";
import { expect, it } from "vitest";
import { systemClock } from "../base/clock.ts";
import { silentLog as log } from "../base/log.ts";
import type { LockPlace } from "../cluster/locks.ts";
import { Locks } from "./locks.ts";

it("keeps no grace lock that its user has closed", async () => {
  const closed: string[] = [];
  class Told extends GraceLock {
    override close(): Promise<void> {
      closed.push(this.owner);
      return super.close();
    }
  }
  const none = () => {
    throw new Error("nobody asks for it");
  };
  const nowhere = { name: "nowhere", lives: new Set<string>(), look: none, take: none, watch: () => () => undefined };
  const place: LockPlace = {
    title: "nowhere",
    permits: none,
    graceLock: (_name, options) => new Told(nowhere, options),
    close: async () => undefined,
  };
  const locks = new Locks({
    open: async () => place,
    clock: systemClock,
    log,
    drainMs: 0,
    owner: null,
    failFast: true,
  });
  const [used, kept] = [await locks.graceLock("a", { owner: "used" }), await locks.graceLock("b", { owner: "kept" })];
  await used[Symbol.asyncDispose]();
  expect(closed).toEqual(["used"]);
  await locks.close();
  expect([closed, kept.closed.aborted]).toEqual([["used", "kept"], true]);
});
