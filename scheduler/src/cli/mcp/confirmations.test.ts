import { beforeEach, describe, expect, it } from "vitest";
import { caught } from "../../../test/support/caught.ts";
import { limits } from "../../base/limits.ts";
import { Confirmations } from "./confirmations.ts";

let nowMs: number;
let confirmations: Confirmations;
beforeEach(() => {
  nowMs = 1_000;
  let made = 0;
  confirmations = new Confirmations(
    () => nowMs,
    () => `token-${++made}`,
  );
});

const given = { run: 7, reason: "why" };
const refused = (why: RegExp) =>
  expect.objectContaining({ code: "CONFIRMATION_REFUSED", path: "confirm", message: expect.stringMatching(why) });

describe("a confirmation", () => {
  it("is valid for its action and state, whatever the order of the arguments", () => {
    const { token, expiresMs } = confirmations.issue("cancel_run", given, { state: "ready", attempt: 1 });
    expect(expiresMs).toBe(1_000 + limits.confirmationMs);
    confirmations.use(token, "cancel_run", { reason: "why", run: 7 })({ attempt: 1, state: "ready" });
  });

  it("is valid once", () => {
    const { token } = confirmations.issue("cancel_run", given, {});
    confirmations.use(token, "cancel_run", given)({});
    expect(caught(() => confirmations.use(token, "cancel_run", given))).toEqual(refused(/used already/));
  });

  it("is invalid for another tool or other arguments, and is used up by such an attempt", () => {
    for (const [tool, other] of [
      ["retry_run", given],
      ["cancel_run", { run: 8, reason: "why" }],
      ["cancel_run", { run: 7 }],
    ] as const) {
      const { token } = confirmations.issue("cancel_run", given, {});
      expect(caught(() => confirmations.use(token, tool, other))).toEqual(refused(/another tool or other arguments/));
      expect(caught(() => confirmations.use(token, "cancel_run", given))).toEqual(refused(/unknown/));
    }
  });

  it("is invalid once the state has changed", () => {
    const { token } = confirmations.issue("cancel_run", given, { state: "ready" });
    const check = confirmations.use(token, "cancel_run", given);
    expect(caught(() => check({ state: "claimed" }))).toEqual(refused(/no longer the one/));
  });

  it("expires", () => {
    const { token } = confirmations.issue("cancel_run", given, {});
    nowMs += limits.confirmationMs;
    expect(caught(() => confirmations.use(token, "cancel_run", given))).toEqual(refused(/too old/));
  });

  it("is evicted by newer confirmations", () => {
    const first = confirmations.issue("cancel_run", given, {});
    for (let n = 0; n < limits.confirmations; n++) confirmations.issue("cancel_run", { run: n }, {});
    expect(caught(() => confirmations.use(first.token, "cancel_run", given))).toEqual(refused(/unknown/));
  });
});
