import { scryptSync } from "node:crypto";
import { describe, expect, test } from "vitest";
import { checkPassword, hashPassword, isOldHash, isPassword, madePassword } from "./password.ts";

describe("a password", () => {
  test("is checked against a salted hash, which differs each time and does not reveal it", async () => {
    const [a, b] = await Promise.all([hashPassword("seven bells at noon"), hashPassword("seven bells at noon")]);
    expect(a).not.toBe(b);
    expect(a).toMatch(/^scrypt\$17\$8\$1\$[\w-]{22}\$[\w-]{43}$/);
    expect(await isPassword("seven bells at noon", a)).toBe(true);
    expect(await isPassword("seven bells at one", a)).toBe(false);
    for (const none of [null, "none", "", "scrypt$15$8$1$$"]) expect(await isPassword("", none)).toBe(false);
  });

  test("matches in composed and decomposed Unicode", async () => {
    expect(await isPassword("zw\u00f6lf glocken", await hashPassword("zwo\u0308lf glocken"))).toBe(true);
  });

  test("that was hashed at a lower cost still matches, and its hash is reported as old", async () => {
    const old = "scrypt$15$8$1$c2FsdHNhbHRzYWx0c2FsdA$";
    const hash = scryptSync("seven bells at noon", Buffer.from("saltsaltsaltsalt"), 32, {
      N: 2 ** 15,
      maxmem: 2 ** 26,
    });
    const text = old + hash.toString("base64url");
    expect([await isPassword("seven bells at noon", text), isOldHash(text)]).toEqual([true, true]);
    expect(await isPassword("seven bells at one", text)).toBe(false);
    expect(isOldHash(await hashPassword("seven bells at noon"))).toBe(false);
  });

  test("that is easy to guess is refused", () => {
    for (const weak of [
      "eleven char",
      "aaaaaaaaaaaaaaaa",
      "annabelle-annabelle",
      "password1234",
      "Passw0rd!2026",
      "qwertyuiop123",
      "123456789012",
      "Welcome2026!!",
      "letmein-letmein",
      "correct horse battery staple",
    ])
      expect(() => checkPassword("annabelle", weak)).toThrow(expect.objectContaining({ code: "PASSWORD_WEAK" }));
    expect(() => checkPassword("ann", "seven bells at noon")).not.toThrow();
    const long = "seven bells at noon, and ".repeat(40);
    for (const length of [64, 1_000]) expect(() => checkPassword("ann", long.slice(0, length))).not.toThrow();
    for (let n = 0; n < 100; n++) expect(() => checkPassword("admin", madePassword())).not.toThrow();
  });
});
