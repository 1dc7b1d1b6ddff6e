import { describe, expect, test } from "vitest";
import { checkPassword, hashPassword, isPassword, madePassword } from "./password.ts";

describe("a password", () => {
  test("is known by its hash, which is another each time and tells nothing", async () => {
    const [a, b] = await Promise.all([hashPassword("seven bells at noon"), hashPassword("seven bells at noon")]);
    expect(a).not.toBe(b);
    expect(a).toMatch(/^scrypt\$15\$8\$1\$[\w-]{22}\$[\w-]{43}$/);
    expect(await isPassword("seven bells at noon", a)).toBe(true);
    expect(await isPassword("seven bells at one", a)).toBe(false);
    // The same letters, composed and not.
    expect(await isPassword("zw\u00f6lf glocken", await hashPassword("zwo\u0308lf glocken"))).toBe(true);
    for (const none of [null, "none", "", "scrypt$15$8$1$$"]) expect(await isPassword("", none)).toBe(false);
  });

  test("that is easy to guess is refused", () => {
    for (const weak of ["eleven char", "aaaaaaaaaaaaaaaa", "annabelle-annabelle"])
      expect(() => checkPassword("annabelle", weak)).toThrow(expect.objectContaining({ code: "PASSWORD_WEAK" }));
    expect(() => checkPassword("ann", "seven bells at noon")).not.toThrow();
    for (let n = 0; n < 100; n++) expect(() => checkPassword("admin", madePassword())).not.toThrow();
  });
});
