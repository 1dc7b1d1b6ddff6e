import { expect, it } from "vitest";
import type { ClaimRequest } from "../run/claim-store.ts";
import type { Store } from "../store/store.ts";
import { TravelClock } from "./travel-clock.ts";
import { WatchedStore } from "./watched-store.ts";

it("makes one heartbeat at a time, because an overtaken answer looks like a restored store", async () => {
  const answers: (() => void)[] = [];
  let asked = 0;
  const pulse = { alive: true, members: [], leadership: { sessionId: null } };
  const beat = () =>
    new Promise((resolve) => {
      asked++;
      answers.push(() => resolve(pulse));
    });
  const parts: Record<string, object> = { sessions: { beat }, runs: { announced: async () => undefined } };
  const real = new Proxy({}, { get: (_, part) => parts[part as string] ?? {} }) as Store;
  const watched = new WatchedStore(real, new TravelClock(0));
  const own = watched.store.sessions.beat(1, 0);
  const look = watched.look(1);
  for (let turn = 0; turn < 10; turn++) await undefined;
  expect(asked).toBe(1);
  answers.shift()?.();
  await own;
  for (let turn = 0; turn < 10; turn++) await undefined;
  expect(asked).toBe(2);
  answers.shift()?.();
  expect(await look).toBe(pulse);
});

it("waits for the worker's follow-up queries on a claim's answer before time advances", async () => {
  let answer = (_dueMs: number | null): void => undefined;
  const nextDue = () =>
    new Promise<number | null>((resolve) => {
      answer = resolve;
    });
  const claim = async () => ({ runs: [], nextDue });
  const real = new Proxy({}, { get: (_, part) => (part === "claims" ? { claim } : {}) }) as Store;
  const watched = new WatchedStore(real, new TravelClock(0));
  const claimed = await watched.store.claims.claim({} as ClaimRequest);
  await watched.answered();
  let isAnswered = false;
  const next = claimed.nextDue();
  const answered = watched.answered().then(() => {
    isAnswered = true;
  });
  for (let turn = 0; turn < 10; turn++) await undefined;
  expect(isAnswered).toBe(false);
  answer(7);
  expect(await next).toBe(7);
  await answered;
});
