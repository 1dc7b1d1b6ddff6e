import { describe, expect, test } from "vitest";
import { hashOfSecret, keyText, makeSecret } from "../../access/worker-key.ts";
import type { WorkerKey, WorkerStore } from "../../access/worker-store.ts";
import type { Clock } from "../../base/clock.ts";
import { CarillonError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { Keys } from "../workers/keys.ts";
import { FailedAttempts, networkOf } from "./failed-attempts.ts";

function ticking() {
  const at = { mono: 0 };
  const clock: Clock = { monotonic: () => at.mono, wall: () => at.mono, after: () => () => undefined };
  const lines: string[] = [];
  const tell = (_fields: object, message: string) => void lines.push(message);
  const log: Log = { debug: tell, info: tell, warn: tell, error: tell };
  return { at, clock, log, lines };
}

describe("failed attempts", () => {
  test("block an address for the rest of a minute, and are logged once per minute", () => {
    const { at, clock, log, lines } = ticking();
    const attempts = new FailedAttempts(clock, log, "worker keys");
    for (let minute = 0; minute < 2; minute++) {
      for (let n = 0; n < 19; n++) attempts.failed("10.0.0.1");
      expect(attempts.turnedAwayMs("10.0.0.1")).toBe(0);
      at.mono += 1_000;
      for (let n = 0; n < 50; n++) attempts.failed("10.0.0.1");
      expect(attempts.turnedAwayMs("10.0.0.1")).toBe(59_000);
      expect(attempts.turnedAwayMs("10.0.0.2")).toBe(0);
      expect(lines).toHaveLength(minute + 1);
      at.mono += 59_000;
      expect(attempts.turnedAwayMs("10.0.0.1")).toBe(0);
    }
  });

  test("from more addresses than fit in memory block all new addresses until the time windows end", () => {
    const { at, clock, log } = ticking();
    const attempts = new FailedAttempts(clock, log, "worker keys");
    for (let n = 0; n < 20_000; n++) attempts.failed(`net ${n}`);
    expect(attempts.turnedAwayMs("net 9999")).toBe(0);
    expect(attempts.turnedAwayMs("net 10000")).toBe(60_000);
    at.mono += 60_000;
    expect(attempts.turnedAwayMs("net 10000")).toBe(0);
  });

  test.each([
    ["10.1.2.3", "10.1.2.3"],
    ["::ffff:10.1.2.3", "10.1.2.3"],
    ["2001:db8:0:12::1", "2001:db8:0:12::/64"],
    ["2001:DB8:0000:0012:ffff:1:2:3", "2001:db8:0:12::/64"],
    ["2001:db8::12", "2001:db8:0:0::/64"],
    ["::1", "0:0:0:0::/64"],
    ["fe80::1%eth0", "fe80:0:0:0::/64"],
    ["unknown", "unknown"],
  ])("%s counts as %s", (address, network) => expect(networkOf(address)).toBe(network));
});

describe("keys", () => {
  const secret = makeSecret();
  const good: WorkerKey & { hash: Buffer } = {
    keyId: 7,
    name: "good",
    groups: ["default"],
    createdMs: 0,
    createdBy: "test",
    expiresMs: null,
    revokedMs: null,
    hash: hashOfSecret(secret),
  };
  function made() {
    const reads = { one: 0, all: 0 };
    const store = {
      key: async (keyId: number) => {
        reads.one++;
        return keyId === 7 ? good : null;
      },
      validKeys: async () => {
        reads.all++;
        return [good];
      },
    } as unknown as WorkerStore;
    const stand = ticking();
    return { ...stand, reads, keys: new Keys(store, stand.clock, stand.log, () => 0) };
  }
  const bearer = (keyId: number, of = makeSecret()) => `Bearer ${keyText(keyId, of)}`;
  const told = (asked: Promise<unknown>) =>
    asked.then(
      () => "let in",
      (error: CarillonError) => error.code,
    );

  test("from an address with many failures cost one store read a second, and a valid key is still accepted", async () => {
    const { at, keys, reads, lines } = made();
    const codes: string[] = [];
    for (let n = 0; n < 1_000; n++) {
      codes.push(await told(keys.of(bearer(n + 100), "10.0.0.1")));
      at.mono += 5;
    }
    expect(codes.filter((code) => code === "KEY_UNKNOWN")).toHaveLength(19);
    expect(new Set(codes.slice(19))).toEqual(new Set(["KEY_THROTTLED"]));
    expect(reads.one).toBe(20);
    expect(reads.all).toBeLessThanOrEqual(5);
    expect(lines).toHaveLength(1);
    // The key was read with all other keys a moment ago, so it is cached, and the store may be queried for this key alone.
    expect(await told(keys.of(bearer(7, secret), "10.0.0.1"))).toBe("let in");
    // When the worker joins, the key is read from the store again, although it was read just now.
    expect(await told(keys.of(bearer(7, secret), "10.0.0.1", true))).toBe("let in");
    expect(reads.one).toBe(22);
    expect(await told(keys.of(bearer(7), "10.0.0.1"))).toBe("KEY_THROTTLED");
    expect(await told(keys.of(undefined, "10.0.0.1"))).toBe("KEY_THROTTLED");
    expect(await told(keys.of(bearer(8), "10.0.0.2"))).toBe("KEY_UNKNOWN");
    at.mono += 60_000;
    expect(await told(keys.of(bearer(9), "10.0.0.1"))).toBe("KEY_UNKNOWN");
  });

  test("with a wrong secret for a known number cost no store read, and the error gives the wait", async () => {
    const { keys, reads, at } = made();
    await keys.of(bearer(7, secret), "10.0.0.9");
    let last: unknown;
    for (let n = 0; n < 100; n++) last = await keys.of(bearer(7), "10.0.0.1").catch((error: unknown) => error);
    expect(reads).toEqual({ one: 1, all: 0 });
    expect(last).toBeInstanceOf(CarillonError);
    expect(last).toMatchObject({ code: "KEY_THROTTLED", retryAfterMs: 60_000 - at.mono });
  });
});
