import { GraceLock } from "@carillon/zookeeper";
import { expect, it } from "vitest";
import { VirtualClock } from "../../test/support/virtual-clock.ts";
import { systemClock } from "../base/clock.ts";
import { silentLog as log } from "../base/log.ts";
import type { LockPlace } from "../cluster/locks.ts";
import { HeldLock } from "./held-lock.ts";
import { Locks } from "./locks.ts";

const turn = () => new Promise((resolve) => setImmediate(resolve));

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

it("closes the lock provider once no lock is held, awaited or open and no election runs; reopens it on demand", async () => {
  const clock = new VirtualClock(0);
  const happened: string[] = [];
  let isBusy = false;
  const grip = { sure: () => true, letGo: async () => true };
  const nowhere = {
    name: "nowhere",
    lives: new Set<string>(),
    look: () => Promise.reject(new Error("nobody asks for it")),
    take: async () => undefined,
    watch: () => () => undefined,
  };
  const open = async (): Promise<LockPlace> => {
    happened.push("opened");
    return {
      title: "a place",
      permits: ({ name }) => ({
        acquire: (_wait, signal) =>
          isBusy
            ? new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }))
            : Promise.resolve(new HeldLock(name, name, 1n, grip)),
      }),
      graceLock: (_name, options) => new GraceLock(nowhere, options),
      close: async () => void happened.push("closed"),
    };
  };
  const rest = async () => void happened.push("rests");
  const locks = new Locks({ open, rest, clock, log, drainMs: 0, owner: "a", failFast: true });
  const later = async () => {
    clock.advance(60_000);
    await turn();
    return happened.splice(0);
  };
  const lock = locks.lock("books");
  const held = await lock.acquire();
  expect(await later()).toEqual(["opened"]);
  await held.release();
  expect(await later()).toEqual(["closed", "rests"]);

  isBusy = true;
  const waiting = lock.acquire({ wait: "1h" });
  await turn();
  expect(await later()).toEqual(["opened"]);
  clock.advance(3_600_000);
  await expect(waiting).rejects.toMatchObject({ code: "LOCK_BUSY" });
  expect(await later()).toEqual(["closed", "rests"]);

  isBusy = false;
  const election = locks.elect("exporter", { onLead: () => undefined });
  await turn();
  expect([await later(), election.term?.leads]).toEqual([["opened"], true]);
  await election.close();
  expect(await later()).toEqual(["closed", "rests"]);

  const nightly = await locks.graceLock("nightly", {});
  expect(await later()).toEqual(["opened"]);
  await nightly.close();
  expect(await later()).toEqual(["closed", "rests"]);
  await locks.close();
  expect(await later()).toEqual([]);
});
