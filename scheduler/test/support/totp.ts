import { Secret, TOTP } from "otpauth";

/**
 * Returns the code that an authenticator app shows for the present time step, or for one that is `later` steps of 30 s later.
 * @param secret in base32
 */
export const codeOf = (secret: string, later = 0): string =>
  new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: Date.now() + later * 30_000 });

/** Returns a code that is wrong for the present time step and for the two before and after it. */
export function wrongCodeOf(secret: string): string {
  const right = [-2, -1, 0, 1, 2].map((later) => codeOf(secret, later));
  return ["000000", "111111", "222222", "333333", "444444", "555555"].find((code) => !right.includes(code)) as string;
}
