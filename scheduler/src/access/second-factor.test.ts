import { Secret } from "otpauth";
import { describe, expect, test } from "vitest";
import { factorUri, hashOfRecoveryCode, makeFactorSecret, makeRecoveryCodes, stepOf } from "./second-factor.ts";

/** The secret of the test vectors in RFC 6238, appendix B, and the last six digits of their codes for SHA-1. */
const secret = Secret.fromLatin1("12345678901234567890").base32;
const vectors: [seconds: number, code: string][] = [
  [59, "287082"],
  [1_111_111_109, "081804"],
  [1_111_111_111, "050471"],
  [1_234_567_890, "005924"],
  [2_000_000_000, "279037"],
  [20_000_000_000, "353130"],
];

describe("a code", () => {
  test.each(vectors)("matches RFC 6238 at %i s", (seconds, code) => {
    expect(stepOf(secret, code, seconds * 1_000)).toBe(Math.floor(seconds / 30));
  });

  test("is accepted up to one time step (30 s) before and after its own", () => {
    const [step, code] = [Math.floor(1_234_567_890 / 30), "005924"];
    const at = (later: number) => stepOf(secret, code, (step + later) * 30_000 + 29_999);
    expect([-2, -1, 0, 1, 2].map(at)).toEqual([null, step, step, step, null]);
  });

  test.each(["", "5924", "0059240", "abcdef", "00592 "])("is refused if malformed: %j", (code) => {
    expect(stepOf(secret, code, 1_234_567_890_000)).toBeNull();
  });
});

test("a secret has 160 random bits", () => {
  const made = Array.from({ length: 2_000 }, () => Secret.fromBase32(makeFactorSecret()).bytes);
  expect(new Set(made.map(({ length }) => length))).toEqual(new Set([20]));
  for (let bit = 0; bit < 160; bit++) {
    const ones = made.filter((bytes) => ((bytes[bit >> 3] ?? 0) >> (bit & 7)) & 1).length;
    // 200 is nine standard deviations, so a random failure practically never occurs.
    expect([bit, Math.abs(ones - 1_000) < 200]).toEqual([bit, true]);
  }
});

test("the URI for an authenticator app names the account, whatever characters the name has", () => {
  const uri = new URL(factorUri(secret, "ann b/c?d&e"));
  expect(uri.protocol).toBe("otpauth:");
  expect(decodeURIComponent(uri.pathname)).toBe("/Carillon:ann b/c?d&e");
  expect(Object.fromEntries(uri.searchParams)).toMatchObject({ issuer: "Carillon", secret, digits: "6", period: "30" });
});

test("the ten recovery codes differ, and match in any case and with spaces around them", () => {
  const codes = makeRecoveryCodes();
  expect(new Set(codes).size).toBe(10);
  const [code = ""] = codes;
  expect(hashOfRecoveryCode(` ${code.toUpperCase()} `)).toEqual(hashOfRecoveryCode(code));
  expect(hashOfRecoveryCode(codes[1] ?? "")).not.toEqual(hashOfRecoveryCode(code));
});
