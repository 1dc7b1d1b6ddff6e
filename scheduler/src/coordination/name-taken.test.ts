import { expect, it } from "vitest";
import { VirtualClock } from "../../test/support/virtual-clock.ts";
import { silentLog } from "../base/log.ts";
import { StoreClock } from "../store/store-clock.ts";
import { joinCluster } from "./membership.ts";
import { type JoinOptions, openSession } from "./open-session.ts";

it("waits for a service that cannot tell if a name's holder is alive, and finally refuses the name", async () => {
  const clock = new VirtualClock(1_000_000);
  const taken = { sessionId: 7, node: "a", beat: 3, timeoutMs: 6_000, witnessed: true, pid: 1, host: "here" };
  const warnings: string[] = [];
  let canTell = false;
  const quiet = () => undefined;
  const joining = joinCluster({
    store: { clock: async () => clock.wall(), sessions: { open: async () => ({ taken }) } },
    storeClock: new StoreClock(clock),
    clock,
    identity: { node: "a" },
    provider: {
      gone: async () => {
        if (!canTell) throw new Error("the service is away");
        return [];
      },
    },
    log: { debug: quiet, info: quiet, error: quiet, warn: (_: object, message: string) => warnings.push(message) },
  } as unknown as JoinOptions);
  let refused: unknown;
  joining.catch((error) => {
    refused = error;
  });
  const pass = async (ms: number) => {
    for (let passedMs = 0; passedMs < ms; passedMs += 250) {
      await new Promise((resolve) => setTimeout(resolve, 0));
      clock.advance(250);
    }
    await new Promise((resolve) => setTimeout(resolve, 0));
  };
  await pass(5 * taken.timeoutMs);
  expect([refused, warnings.length], "told once").toEqual([undefined, 1]);
  canTell = true;
  await pass(2 * taken.timeoutMs - 1_000);
  expect(refused).toBeUndefined();
  await pass(2_000);
  expect(refused).toMatchObject({ code: "NODE_NAME_TAKEN" });
});

it("does not end a name's holder on the service's report alone: the holder is asked for a heartbeat first", async () => {
  const clock = new VirtualClock(1_000_000);
  const taken = { sessionId: 7, node: "a", beat: 3, timeoutMs: 6_000, witnessed: true, pid: 1, host: "here" };
  const [asked, ended]: [number[], number[]] = [[], []];
  let lives = true;
  const prompt = async (sessionId: number) => {
    asked.push(sessionId);
    if (lives) taken.beat++;
  };
  const end = async (sessionId: number) => ended.push(sessionId);
  const open = async () => (ended.length > 0 ? { sessionId: 8 } : { taken: { ...taken } });
  const options = {
    store: { sessions: { open, prompt, end } },
    storeClock: new StoreClock(clock),
    clock,
    identity: { node: "a" },
    provider: { gone: async (ids: number[]) => ids },
    log: silentLog,
  } as unknown as JoinOptions;
  const outcome = async () => {
    let found: unknown;
    openSession(options).then(
      (sessionId) => (found = sessionId),
      (error) => (found = error),
    );
    while (found === undefined) {
      await new Promise((resolve) => setTimeout(resolve, 0));
      clock.advance(250);
    }
    return found;
  };
  expect(await outcome()).toMatchObject({ code: "NODE_NAME_TAKEN" });
  expect([asked, ended]).toEqual([[7], []]);
  lives = false;
  expect(await outcome()).toBe(8);
  expect([asked, ended]).toEqual([[7, 7], [7]]);
});
