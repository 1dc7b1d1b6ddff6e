import { z } from "zod";
import { password } from "./access.ts";
import { maybeTime, name, reason, route, text } from "./route.ts";

const noun = "access" as const;
const code = text(100).min(1).describe("Of the authenticator app.");

export const secondFactorRoutes = {
  getSecondFactor: route({
    touches: "nothing",
    method: "GET",
    path: "/v1/me/second-factor",
    noun,
    policy: "signed-in",
    withoutFactor: true,
    summary: "Whether one's own sign-ins need a code beside the password",
    answer: z.strictObject({
      enrolled: maybeTime.describe("null: no second factor is asked for."),
      recoveryCodes: z.int().describe("Those that are not used yet."),
    }),
    errors: [],
  }),
  beginSecondFactor: route({
    touches: "nothing",
    method: "POST",
    path: "/v1/me/second-factor",
    noun,
    policy: "signed-in",
    withoutFactor: true,
    status: 201,
    makes: { readBy: "getSecondFactor", places: {} },
    secret: true,
    unseen: ["password"],
    summary: "Draw the secret of a second factor (TOTP), which counts once a code of it was shown",
    body: z.strictObject({ password: password.describe("One's own.") }),
    answer: z.strictObject({
      secret: z.string().describe("In base32, to be typed into an authenticator app."),
      uri: z.string().describe("The same as an otpauth: URI, for a QR code."),
    }),
    errors: ["SIGN_IN_REFUSED", "TOO_MANY_ATTEMPTS", "SECOND_FACTOR_TAKEN"],
  }),
  confirmSecondFactor: route({
    touches: "nothing",
    method: "POST",
    path: "/v1/me/second-factor/confirm",
    noun,
    policy: "signed-in",
    withoutFactor: true,
    secret: true,
    unseen: ["code"],
    summary:
      "Show a code of the second factor that was begun: from now on sign-ins need one, and every other sign-in ends",
    body: z.strictObject({ code }),
    answer: z.strictObject({ recoveryCodes: z.array(z.string()).describe("Each works once in place of a code.") }),
    errors: ["CODE_REFUSED", "SECOND_FACTOR_UNKNOWN", "TOO_MANY_ATTEMPTS", "SECRET_KEY_MISSING"],
  }),
  removeSecondFactor: route({
    touches: "nothing",
    method: "POST",
    path: "/v1/me/second-factor/remove",
    noun,
    policy: "signed-in",
    unseen: ["password", "code"],
    summary: "Remove one's own second factor, with the password and a code of it",
    body: z.strictObject({ password: password.describe("One's own."), code: code.describe("Or a recovery code.") }),
    answer: null,
    errors: [
      ...(["SIGN_IN_REFUSED", "CODE_REFUSED", "SECOND_FACTOR_UNKNOWN", "TOO_MANY_ATTEMPTS"] as const),
      "SECRET_KEY_MISSING",
    ],
  }),
  resetSecondFactor: route({
    touches: "cluster",
    method: "DELETE",
    path: "/v1/users/{user}/second-factor",
    noun,
    policy: "admin",
    params: z.strictObject({ user: name(100).describe("The user's name.") }),
    query: z.strictObject({ reason }),
    summary: "Remove a user's second factor, whose device and recovery codes are lost",
    answer: null,
    errors: ["USER_UNKNOWN", "SECOND_FACTOR_UNKNOWN"],
  }),
} as const;
