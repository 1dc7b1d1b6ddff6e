import { expect, test } from "vitest";
import { alarmRules } from "../../alarms/alarms.ts";
import { systemClock } from "../../base/clock.ts";
import { CarillonError } from "../../base/errors.ts";
import { type AlarmOptions, alarmSettings, noAlarms } from "../../settings/alarms/alarms.ts";
import { Alarms, type AlarmsOptions } from "./watch.ts";

const quiet = () => undefined;

/** Creates an `Alarms` object on a store with one message waiting to be sent. */
function stage(
  answer: () => Promise<void>,
  rules: AlarmOptions["rules"] = { late: ["ops"] },
  term: number | null = 1,
  settings = alarmSettings({ channels: { ops: { webhook: "https://x.example/" } }, rules }),
) {
  const [unsent, looks, sent] = [[], [], []] as [unknown[], unknown[], unknown[]];
  const [followed, errors] = [[], []] as [unknown[], unknown[]];
  let pulse: (pulse: { led: boolean; clock: { number: number } }) => void = quiet;
  const waiting = [{ id: 1, channel: "ops", attempts: 1, createdMs: 0, message: { kind: "test", words: "x" } }];
  const alarms = {
    look: async (looked: unknown) => void looks.push(looked),
    follow: async (summaryMs: unknown) => void followed.push(summaryMs),
    take: async () => waiting.splice(0),
    sent: async () => undefined,
    unsent: async (...told: unknown[]) => void unsent.push(told),
  };
  const clock = { ...systemClock, monotonic: () => mono, after: systemClock.after.bind(systemClock) };
  let mono = 1e6;
  const own = new Alarms({
    store: { alarms },
    clock,
    storeClock: { now: () => 1_000 },
    node: "atlas",
    unreadable: () => null,
    channels: { ops: (id: string) => answer().then(() => sent.push(id)) },
    membership: { onPulse: (told: typeof pulse) => (pulse = told), term: () => term },
    log: { debug: quiet, info: quiet, warn: quiet, error: (fields: unknown) => errors.push(fields) },
    settings,
  } as unknown as AlarmsOptions);
  const look = async (passesMs = 10_000, number = 0) => {
    mono += passesMs;
    pulse({ led: term !== null, clock: { number } });
    await new Promise(setImmediate);
    await new Promise(setImmediate);
  };
  return { own, look, unsent, looks, sent, followed, errors, alarms };
}

test.each([
  ["a leader without alarms of its own evaluates the stored rules alone", noAlarms(), 1, 0, 1],
  ["a leader with alarms evaluates both", undefined, 1, 1, 1],
  ["another process evaluates neither, and sends what waits for its channels", undefined, null, 0, 0],
])("%s", async (_, settings, term, looked, followed) => {
  const stageOf = stage(async () => undefined, { late: ["ops"] }, term, settings);
  await stageOf.look();
  expect([stageOf.looks.length, stageOf.followed.length]).toEqual([looked, followed]);
  expect(stageOf.sent.length).toBe(1);
  await stageOf.own.stop();
});

test.each(["look", "follow"] as const)(
  "messages are sent although the evaluation of rules failed: %s",
  async (failing) => {
    const { own, look, sent, errors, alarms } = stage(async () => undefined);
    alarms[failing] = async () => {
      throw new Error("canceling statement due to statement timeout");
    };
    await look();
    await own.stop();
    expect(sent.length).toBe(1);
    expect(errors).toEqual([{ error: "canceling statement due to statement timeout" }]);
  },
);

test("a receiver's answer is kept in a form that the store accepts", async () => {
  const { own, look, unsent } = stage(async () => {
    throw new Error("550 \0 no");
  });
  await look();
  expect(unsent).toEqual([[1, "550 \ufffd no", expect.any(Number), expect.anything()]]);
  await own.stop();
});

test("a message that arrived is not called unsent because the store could not note it", async () => {
  const { own, look, sent, unsent, alarms } = stage(async () => undefined);
  alarms.sent = async () => {
    throw new CarillonError("STORE_UNREACHABLE", "away");
  };
  await look();
  expect([sent.length, unsent]).toEqual([1, []]);
  await own.stop();
});

const off = Object.fromEntries(alarmRules.map((rule) => [rule, []]));

test.each([
  ["longer than the usual wait", 600_000, 600_000],
  ["shorter than it", 5_000, 30_000],
  ["too long", 86_400_000, 3_600_000],
])("a receiver's Retry-After is followed: %s", async (_, askedMs, waitedMs) => {
  const { own, look, unsent } = stage(async () => {
    throw new CarillonError("HTTP_REFUSED", "h.example answered 429", { retryAfterMs: askedMs });
  });
  await look();
  expect(unsent).toEqual([[1, "h.example answered 429", 1_000 + waitedMs, expect.anything()]]);
  await own.stop();
});

test("a step of the store's clock is evaluated at once", async () => {
  const { own, look, looks } = stage(async () => undefined, { ...off, clock: ["ops"] });
  await look();
  await look(10);
  expect(looks).toEqual([["clock"]]);
  await look(10, 1);
  expect(looks).toHaveLength(2);
  await own.stop();
});

test("a leader that has not checked all tasks yet does not report that all are readable", async () => {
  const { own, look, looks } = stage(async () => undefined, { ...off, clock: ["ops"], unreadable: ["ops"] });
  await look();
  expect(looks).toEqual([["clock"]]);
  await own.stop();
});

test("without a leader, a node evaluates only the leaderless and the recovery rule", async () => {
  const { own, look, looks } = stage(async () => undefined, undefined, null);
  await look();
  expect(looks, "not at once").toEqual([]);
  await look(30_000);
  expect(looks).toEqual([["leaderless", "recovery"]]);
  await own.stop();
});

test("a hanging channel delays no evaluation", async () => {
  const { look, looks } = stage(() => new Promise(quiet), off);
  await look();
  await look();
  expect(looks).toHaveLength(2);
});

test("if every rule is turned off, open incidents end and waiting messages are sent", async () => {
  const { own, look, looks, sent } = stage(async () => undefined, off);
  await look();
  expect(looks).toEqual([[]]);
  expect(sent).toEqual([expect.stringMatching(/^carillon-alarm-\w+-1$/)]);
  await own.stop();
});

test("a message whose channel is dropped while it is taken goes to the old channel, and the next ones wait for a process that has it", async () => {
  const { own, look, sent, alarms } = stage(async () => undefined, off);
  const { take } = alarms;
  let takes = 0;
  alarms.take = async () => {
    takes++;
    own.tellBy({});
    return take();
  };
  await look();
  await own.stop();
  expect(sent).toEqual([expect.stringMatching(/^carillon-alarm-\w+-1$/)]);
  expect(takes).toBe(1);
});
