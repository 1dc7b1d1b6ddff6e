import { randomBytes, scrypt, timingSafeEqual } from "node:crypto";
import { CarillonError } from "../base/errors.ts";
import { isCommonPassword } from "./guessed-passwords.ts";

/**
 * The scrypt parameters, OWASP's minimum as of 2026: each check of a password takes 128 MiB and some hundred ms.
 * @internal Only tests that do not concern passwords lower the cost, each in its own process: test/support/cheap-passwords.ts.
 */
export const cost = { N: 2 ** 17, r: 8, p: 1, maxmem: 256 * 1024 * 1024 };
const present = () => ["scrypt", Math.log2(cost.N), cost.r, cost.p].join("$");
const hashBytes = 32;
const leastLength = 12;
const leastDifferent = 5;

const derive = (password: string, salt: Buffer, { N, r, p, maxmem }: typeof cost): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    scrypt(password.normalize("NFKC"), salt, hashBytes, { N, r, p, maxmem }, (error, key) =>
      error ? reject(error) : resolve(key),
    );
  });

/** Returns "scrypt$17$8$1$SALT$HASH". The text contains the parameters, so that old hashes stay valid when the cost is raised. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(16);
  const hash = await derive(password, salt, cost);
  return [present(), salt.toString("base64url"), hash.toString("base64url")].join("$");
}

/** True if the hash was made with other parameters than the present ones. The next successful sign-in then stores a new hash. */
export const isOldHash = (hash: string): boolean => !hash.startsWith(`${present()}$`);

/** @param hash null: no user has the name; the check still takes as long, so that its duration does not reveal this */
export async function isPassword(password: string, hash: string | null): Promise<boolean> {
  const [kind, log = Math.log2(cost.N), r = cost.r, p = cost.p, salt = "", expected = ""] = (hash ?? "none").split("$");
  const given = { ...cost, N: 2 ** Number(log), r: Number(r), p: Number(p) };
  const found = await derive(password, Buffer.from(salt, "base64url"), given);
  const wanted = Buffer.from(expected, "base64url");
  return kind === "scrypt" && wanted.length === found.length && timingSafeEqual(found, wanted);
}

export const passwordWeak = (what: string): CarillonError =>
  new CarillonError("PASSWORD_WEAK", `the password ${what}`, {
    hint: `Give at least ${leastLength} characters; a few words will do.`,
  });

/**
 * Checks that a password is long and varied, does not contain a user's name of more than three characters, and is not made of
 * common words. @throws PASSWORD_WEAK
 */
export function checkPassword(user: string, password: string): void {
  if (password.length < leastLength) throw passwordWeak(`is shorter than ${leastLength} characters`);
  if (new Set(password).size < leastDifferent) throw passwordWeak("has too few different characters");
  if (password.toLowerCase().includes(user.toLowerCase()) && user.length > 3)
    throw passwordWeak("contains the user's name");
  if (isCommonPassword(password)) throw passwordWeak("is made of words that everybody guesses");
}

/**
 * Checks a new password, set by an admin or by the user. @throws PASSWORD_WEAK, FILE_INVALID if the list of breached passwords is invalid
 */
export type PasswordCheck = (user: string, password: string) => Promise<void>;

/** @param breached the list of passwords known from breaches; null: no list is configured */
export const passwordCheck =
  (breached: { has(password: string): Promise<boolean> } | null): PasswordCheck =>
  async (user, password) => {
    checkPassword(user, password);
    if (await breached?.has(password)) throw passwordWeak("is known from breaches elsewhere");
  };

/** Returns a random password of 24 letters and digits (about 119 bits) in groups of six, without signs that look alike. */
export function madePassword(): string {
  const letters = "abcdefghjkmnpqrstuvwxyz23456789";
  const picked = Array.from(randomBytes(96))
    .filter((byte) => byte < 248)
    .slice(0, 24)
    .map((byte) => letters[byte % 31]);
  return (picked.join("").match(/.{6}/g) as string[]).join("-");
}
