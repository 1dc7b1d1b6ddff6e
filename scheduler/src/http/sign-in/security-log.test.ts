import { describe, expect, it } from "vitest";
import { VirtualClock } from "../../../test/support/virtual-clock.ts";
import { silentLog } from "../../base/log.ts";
import { SecurityLog } from "./security-log.ts";

function told() {
  const clock = new VirtualClock(0);
  const lines: object[] = [];
  const warn = (fields: object, message: string) => void lines.push({ ...fields, message });
  return { clock, lines, security: new SecurityLog(clock, { ...silentLog, info: warn, warn }) };
}
const message = "refused: The name or the password is wrong.";
const more = "more requests were refused than are told one by one";

describe("the security log", () => {
  it("records each sign-in and refusal, with the known details", () => {
    const { lines, security } = told();
    security.signedIn("password", { address: "10.0.0.1", user: "ann" });
    security.refused("SIGN_IN_REFUSED", { address: "10.0.0.2", user: "ann" });
    security.close();
    expect(lines).toEqual([
      { by: "password", address: "10.0.0.1", user: "ann", message: "signed in" },
      { code: "SIGN_IN_REFUSED", address: "10.0.0.2", user: "ann", message },
    ]);
  });

  it("records 60 entries of a flood per minute, and the number of further ones", () => {
    const { clock, lines, security } = told();
    for (let n = 0; n < 1_000; n++) security.refused("SIGN_IN_REFUSED", { address: `10.0.1.${n % 250}` });
    security.refused("ACCESS_DENIED", { address: "10.0.0.1", user: "ann" });
    expect(lines).toHaveLength(60);
    clock.advance(60_000);
    expect(lines.slice(60)).toEqual([{ more: { SIGN_IN_REFUSED: 940, ACCESS_DENIED: 1 }, message: more }]);
    security.refused("SIGN_IN_REFUSED", { address: "10.0.0.1" });
    expect(lines.slice(61)).toEqual([{ code: "SIGN_IN_REFUSED", address: "10.0.0.1", message }]);
    clock.advance(60_000);
    expect(lines).toHaveLength(62);
  });

  it("records that number when the server stops", () => {
    const { clock, lines, security } = told();
    for (let n = 0; n < 61; n++) security.refused("SIGN_IN_REFUSED", { address: "10.0.0.1" });
    security.close();
    expect(lines.slice(60)).toEqual([{ more: { SIGN_IN_REFUSED: 1 }, message: more }]);
    clock.advance(120_000);
    expect(lines).toHaveLength(61);
  });
});
