import { Secret, TOTP } from "otpauth";

/** An authenticator app's code: of the present time step, or of a later one. @param secret in base32 */
export const codeOf = (secret: string, later = 0): string =>
  new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: Date.now() + later * 30_000 });

/** A code that is wrong now, and was and will be for a minute. */
export function wrongCodeOf(secret: string): string {
  const right = [-2, -1, 0, 1, 2].map((later) => codeOf(secret, later));
  return ["000000", "111111", "222222", "333333", "444444", "555555"].find((code) => !right.includes(code)) as string;
}
