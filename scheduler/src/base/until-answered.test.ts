import { describe, expect, it } from "vitest";
import { VirtualClock } from "../../test/support/virtual-clock.ts";
import { CarillonError, type ErrorCode } from "./errors.ts";
import { untilAnswered } from "./until-answered.ts";

/** A request that fails `failures` times and then succeeds; the virtual clock advances between the calls. */
function stage(code: ErrorCode, failures: number, failFast = false) {
  const clock = new VirtualClock(0);
  const stopping = new AbortController();
  let asked = 0;
  const answer = untilAnswered(
    async () => {
      if (asked++ < failures) throw new CarillonError(code, "as the test has it");
      return asked;
    },
    { clock, failFast, signal: stopping.signal },
  );
  const settle = async () => {
    for (let turn = 0; turn < 20; turn++) await undefined;
  };
  const pass = async (ms: number) => {
    await settle();
    clock.advance(ms);
    await settle();
  };
  return { answer, pass, stopping, asked: () => asked };
}

describe("a store query during start-up", () => {
  it("is retried until the store answers", async () => {
    const { answer, pass, asked } = stage("STORE_UNREACHABLE", 2);
    await pass(249);
    expect(asked()).toBe(1);
    await pass(1);
    await pass(250);
    expect(await answer).toBe(3);
  });

  it("is not retried with failFast or after any other error", async () => {
    await expect(stage("STORE_UNREACHABLE", 1, true).answer).rejects.toMatchObject({ code: "STORE_UNREACHABLE" });
    await expect(stage("NODE_NAME_TAKEN", 1).answer).rejects.toMatchObject({ code: "NODE_NAME_TAKEN" });
  });

  it("is given up when the process is stopped", async () => {
    const { answer, pass, stopping } = stage("STORE_UNREACHABLE", 9);
    await pass(0);
    stopping.abort();
    await expect(answer).rejects.toMatchObject({ code: "STORE_UNREACHABLE" });
  });
});
