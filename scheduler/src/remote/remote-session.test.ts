import { expect, it } from "vitest";
import { VirtualClock } from "../../test/support/virtual-clock.ts";
import type { PollAnswer } from "../api/worker-protocol.ts";
import { CarillonError, type ErrorCode } from "../base/errors.ts";
import { silentLog } from "../base/log.ts";
import { noStandIn } from "../cluster/stand-in.ts";
import { StoreClock } from "../store/store-clock.ts";
import type { Line } from "./line.ts";
import { RemoteSession } from "./remote-session.ts";

const timeoutMs = 3_000;

/** Joins at servers whose response changes at the given times (ms); null means that they accept the join. @returns the session's id */
async function joining(says: readonly (readonly [number, ErrorCode | null])[]): Promise<number> {
  const clock = new VirtualClock(0);
  const bornMono = clock.monotonic();
  const line = {
    async post() {
      const atMs = clock.monotonic() - bornMono;
      const code = says.findLast(([fromMs]) => fromMs <= atMs)?.[1] ?? null;
      if (code) throw new CarillonError(code, "as the test has it");
      const answer = { session: 7, nowMs: 0, tookMs: 0, sureForMs: timeoutMs, recalls: [] } as unknown as PollAnswer;
      return { answer, beganMono: clock.monotonic(), endedMono: clock.monotonic() };
    },
  } as unknown as Line;
  const session = new RemoteSession({
    standIn: noStandIn,
    line,
    clock,
    storeClock: new StoreClock(clock),
    random: { next: () => 1 },
    log: silentLog,
    name: "w1",
    join: {},
    timeoutMs,
    failFast: false,
    held: () => 0,
  });
  let over = false;
  const begun = session.begin(new AbortController().signal).finally(() => {
    over = true;
  });
  begun.catch(() => undefined); // Avoids an unhandled rejection; the await below handles the error.
  while (!over) {
    await new Promise((resolve) => setImmediate(resolve));
    clock.advance(50);
  }
  await begun;
  return session.sessionId;
}

it("gives a server that has just started time to detect that the name's holder is gone", async () => {
  // Simulates a power cut: no server responds for a long time, and the first server that responds accepts the name only after the
  // former session has expired.
  const says = [
    [0, "SERVER_UNREACHABLE"],
    [20_000, "NODE_NAME_TAKEN"],
    [24_500, null],
  ] as const;
  expect(await joining(says)).toBe(7);
});

it("restarts that time when the servers were away again", async () => {
  const again = [
    [10_000, "SERVER_UNREACHABLE"],
    [15_000, "NODE_NAME_TAKEN"],
    [19_500, null],
  ] as const;
  expect(await joining([[0, "NODE_NAME_TAKEN"], [4_000, "SERVER_UNREACHABLE"], ...again])).toBe(7);
});

it("gives up if the name's holder is alive", async () => {
  await expect(joining([[0, "NODE_NAME_TAKEN"]])).rejects.toMatchObject({ code: "NODE_NAME_TAKEN" });
});
