import { expect, test } from "vitest";
import { systemClock } from "../../base/clock.ts";
import { CarillonError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { alarmSettings } from "../../settings/alarms/alarms.ts";
import { Ping } from "./ping.ts";

const settled = () => new Promise(setImmediate);

function stage(ping: { url: string; every?: string } | undefined = { url: "https://m.example/x", every: "1m" }) {
  let mono = 0;
  const pinged: number[] = [];
  const said: [level: string, message: string, why: unknown][] = [];
  const at = (level: string) => (fields: object, message: string) =>
    void said.push([level, message, "why" in fields ? fields.why : undefined]);
  const now = { behind: null as string | null, call: async (): Promise<void> => undefined };
  const stopping = new AbortController();
  const own = new Ping({
    store: { alarms: { behind: async () => now.behind } } as never,
    storeClock: { now: () => 1_000 } as never,
    clock: { ...systemClock, monotonic: () => mono, after: systemClock.after.bind(systemClock) },
    log: { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") } as Log,
    settings: alarmSettings({
      channels: { ops: { webhook: "https://x.example/" } },
      ...(ping ? { ping } : {}),
    }),
    call: async () => {
      await now.call();
      pinged.push(mono);
    },
  });
  const beat = async (ms: number) => {
    mono = ms;
    own.beat(stopping.signal);
    await settled();
  };
  return { own, beat, now, pinged, said, stopping };
}

test("the ping is sent at the first heartbeat, and then once per interval", async () => {
  const { beat, pinged, said } = stage();
  for (let ms = 0; ms <= 180_000; ms += 500) await beat(ms);
  expect(pinged).toEqual([0, 60_000, 120_000, 180_000]);
  expect(said).toEqual([]);
});

test("the ping is not sent while the cluster is behind, and both changes are logged once", async () => {
  const { beat, now, pinged, said } = stage();
  await beat(0);
  now.behind = "due runs wait, and no worker takes them: settle";
  for (const minute of [1, 2, 3]) await beat(minute * 60_000);
  now.behind = null;
  for (const minute of [4, 5]) await beat(minute * 60_000);
  expect(pinged).toEqual([0, 240_000, 300_000]);
  expect(said).toEqual([
    ["warn", "the ping is not given", "due runs wait, and no worker takes them: settle"],
    ["info", "the ping is given again", undefined],
  ]);
});

test("a failed ping is retried at the next interval", async () => {
  const { beat, now, pinged, said } = stage();
  now.call = async () => {
    throw new CarillonError("HTTP_REFUSED", "m.example answered 500");
  };
  await beat(0);
  await beat(60_000);
  now.call = async () => undefined;
  await beat(120_000);
  expect(pinged).toEqual([120_000]);
  expect(said.map(([, message, why]) => [message, why])).toEqual([
    ["the ping is not given", "m.example answered 500"],
    ["the ping is given again", undefined],
  ]);
});

test("a hanging ping is not sent twice, and a stop waits for it without an error", async () => {
  const { own, beat, now, said, stopping } = stage();
  let calls = 0;
  let end: (error: Error) => void = () => undefined;
  now.call = () => {
    calls++;
    return new Promise((_, reject) => (end = reject));
  };
  await beat(0);
  await beat(600_000);
  expect(calls).toBe(1);
  stopping.abort(new Error("this process stops"));
  end(new Error("this process stops"));
  await own.stop();
  expect(said).toEqual([]);
});

test("no ping is sent if none is configured", async () => {
  const { beat, pinged } = stage({ url: "https://m.example/x" });
  await beat(0);
  expect(pinged).toEqual([0]);
  expect(alarmSettings({ channels: { ops: { webhook: "https://x.example/" } } }).ping).toBeNull();
});

test("a ping needs no channels; a wrong option is refused with its path", () => {
  const url = "https://m.example/x";
  expect(alarmSettings({ ping: { url } })).toMatchObject({ ping: { url, everyMs: 60_000, allow: [] }, channels: {} });
  for (const [ping, path, words] of [
    [{ ulr: url }, "alarms.ping.ulr", 'did you mean "url"?'],
    [{}, "alarms.ping.url", "must be an http:// or https:// URL"],
    [{ url: "https://me:pw@m.example/" }, "alarms.ping.url", "without a user or password"],
    [{ url, allow: "10.0.0.1" }, "alarms.ping.allow", "must be a list"],
    ["often", "alarms.ping", "must be an object"],
  ] as const)
    expect(() => alarmSettings({ ping: ping as never })).toThrow(
      expect.objectContaining({ code: "OPTION_INVALID", path, message: expect.stringContaining(words) }),
    );
  expect(() => alarmSettings({ ping: { url, every: "often" } })).toThrow(
    expect.objectContaining({ code: "DURATION_INVALID" }),
  );
});
