import { z } from "zod";
import { roles, type Scope, scopes } from "../../access/access.ts";
import { limits } from "../../base/limits.ts";
import { namespaceLength } from "../../base/namespace.ts";
import { duration, id, maybeTime, name, page, paged, reason, route, text, time, versionNumber } from "./route.ts";

const role = z.enum(roles);
const scope = z.enum(scopes as [Scope, ...Scope[]]);
const userName = name(100);
/** The whole password is hashed, up to this length; scrypt does not truncate at 72 bytes, as bcrypt does. Longer passwords are refused. */
export const password = z.string().min(1).max(limits.passwordLength);

const namespace = name(namespaceLength);
/** A user's roles; the role in every namespace is listed with the namespace `*`. */
const grants = z.array(z.strictObject({ namespace: z.string(), role }));
const temporary = z
  .boolean()
  .default(false)
  .describe("The password is handed over: its user replaces it at the first sign-in.");
const givenGrants = z
  .array(z.strictObject({ namespace, role }))
  .max(limits.grants)
  .describe("Roles in one namespace each, instead of or above the role everywhere.");
const maybeRole = role.nullable().describe("Everywhere; null: only where the grants say.");

const user = z
  .strictObject({
    name: userName,
    role: maybeRole,
    grants,
    created: time,
    createdBy: z.string(),
    disabled: maybeTime,
    version: versionNumber.describe("Of the rights, and of whether one may sign in."),
    provided: z.boolean().describe("Signed in by a provider, without a password."),
    temporary: z.boolean().describe("The password was handed over and is to be replaced at the first sign-in."),
    secondFactor: maybeTime.describe("Since when a code is asked for beside the password; null: none is."),
  })
  .meta({ id: "User" });

const token = z
  .strictObject({
    name: userName,
    user: z.string(),
    role,
    scopes: z.array(scope).nullable().describe("null: everything that the role may."),
    namespaces: z.array(z.string()).nullable().describe("null: wherever its user's role is."),
    created: time,
    expires: time,
    revoked: maybeTime,
  })
  .meta({ id: "Token" });

const key = z
  .strictObject({
    name: userName,
    groups: z.array(z.string()),
    created: time,
    by: z.string(),
    expires: maybeTime,
    revoked: maybeTime,
  })
  .meta({ id: "WorkerKey" });

const me = z
  .strictObject({
    user: z.string(),
    token: z.string().nullable(),
    role: maybeRole,
    grants,
    scopes: z.array(scope).nullable(),
    expires: maybeTime,
    temporary: z
      .boolean()
      .describe(
        "The password was handed over: until it is replaced, only this, a new password and signing out are allowed.",
      ),
    provided: z.boolean().describe("Signed in by a provider: there is no password here, and no second factor."),
    factorNeeded: z.boolean().describe("A second factor must be made before anything else."),
  })
  .meta({ id: "Me" });

const signIn = z
  .strictObject({
    signIn: id,
    begun: time,
    seen: time.describe("Last used; uses of the same minute are one."),
    expires: time.describe("Without a further use."),
    address: z.string().nullable().describe("Whom it was begun from; null: not known."),
    agent: z.string().nullable().describe("What its browser calls itself."),
    present: z.boolean().describe("It is the one of this request."),
  })
  .meta({ id: "SignIn" });

const userParams = z.strictObject({ user: userName.describe("The user's name.") });
const signInNumber = id.describe("The sign-in's number.");
const tokenParams = z.strictObject({ token: userName.describe("The token's name.") });
const tokenOwner = userName.optional().describe("The token's user; default: the caller.");
const keyParams = z.strictObject({ key: userName.describe("The worker key's name.") });
const noun = "access" as const;

export const accessRoutes = {
  howToSignIn: route({
    touches: "nothing",
    method: "GET",
    path: "/v1/sign-in",
    noun,
    policy: "anyone",
    summary: "How one may sign in here: by a password, and where a provider is named, by going to its path",
    answer: z.strictObject({
      provider: z.strictObject({ label: z.string(), path: z.string() }).nullable(),
      cookie: z.boolean().describe("Whether this browser holds a sign-in, which may have ended: else it need not ask."),
    }),
    errors: [],
  }),
  signIn: route({
    touches: "nothing",
    method: "POST",
    path: "/v1/sign-in",
    noun,
    policy: "anyone",
    summary: "Sign in with a password; the cookie that is set is for browsers",
    body: z.strictObject({
      name: userName.describe("The user's name."),
      password: password.describe("The user's password."),
      code: text(100)
        .optional()
        .describe("Of the authenticator app, or a recovery code: where the user has a second factor."),
    }),
    answer: me,
    errors: [
      ...(["SIGN_IN_REFUSED", "SECOND_FACTOR_NEEDED", "CODE_REFUSED", "TOO_MANY_ATTEMPTS", "ORIGIN_REFUSED"] as const),
      "SECRET_KEY_MISSING",
    ],
  }),
  signOut: route({
    touches: "nothing",
    method: "POST",
    path: "/v1/sign-out",
    noun,
    policy: "signed-in",
    byTemporary: true,
    withoutFactor: true,
    summary: "End this sign-in",
    answer: null,
    errors: [],
  }),
  getMe: route({
    touches: "nothing",
    method: "GET",
    path: "/v1/me",
    noun,
    policy: "signed-in",
    byTemporary: true,
    withoutFactor: true,
    summary: "Who asks, and what that one may",
    answer: me,
    errors: [],
  }),
  listSignIns: route({
    touches: "nothing",
    method: "GET",
    path: "/v1/me/sign-ins",
    noun,
    policy: "signed-in",
    summary: "One's own sign-ins that have not ended, newest first",
    query: z.strictObject(paged),
    answer: page(signIn),
    errors: [],
  }),
  endSignIn: route({
    touches: "nothing",
    method: "DELETE",
    path: "/v1/me/sign-ins/{signIn}",
    noun,
    policy: "signed-in",
    summary:
      "End a sign-in of one's own, in whatever browser it is. Asked by a browser, its sign-in is at most 10 minutes old",
    params: z.strictObject({ signIn: signInNumber }),
    answer: null,
    errors: ["SIGN_IN_UNKNOWN", "SIGN_IN_OLD"],
  }),
  endOtherSignIns: route({
    touches: "nothing",
    method: "DELETE",
    path: "/v1/me/sign-ins",
    noun,
    policy: "signed-in",
    summary:
      "End every sign-in of one's own but this one, which is at most 10 minutes old; asked by a token, every one",
    answer: z.strictObject({ ended: z.int().min(0) }),
    errors: ["SIGN_IN_OLD"],
  }),
  changePassword: route({
    touches: "nothing",
    method: "POST",
    path: "/v1/me/password",
    noun,
    policy: "signed-in",
    byTemporary: true,
    unseen: ["present", "next"],
    summary: "Change one's own password; every other sign-in of one's own ends",
    body: z.strictObject({
      present: password.describe("The password as it is."),
      next: password.describe("The new password."),
    }),
    answer: null,
    errors: ["SIGN_IN_REFUSED", "PASSWORD_WEAK", "FILE_INVALID", "TOO_MANY_ATTEMPTS"],
  }),
  listUsers: route({
    touches: "cluster",
    method: "GET",
    path: "/v1/users",
    noun,
    policy: "admin",
    summary: "Users, by name",
    query: z.strictObject(paged),
    answer: page(user),
    errors: [],
  }),
  createUser: route({
    touches: "cluster",
    method: "POST",
    path: "/v1/users",
    noun,
    policy: "admin",
    status: 201,
    makes: { readBy: "getUser", places: { user: "name" } },
    unseen: ["password"],
    summary: "Make a user",
    body: z.strictObject({
      name: userName.describe("The user's name; no other user has it."),
      password: password.describe("The user's password, of which a hash is kept."),
      temporary,
      role: maybeRole,
      grants: givenGrants.optional(),
      reason,
    }),
    answer: user,
    errors: ["USER_NAME_TAKEN", "PASSWORD_WEAK", "FILE_INVALID", "TASK_INVALID", "OPTION_INVALID"],
  }),
  getUser: route({
    touches: "cluster",
    method: "GET",
    path: "/v1/users/{user}",
    noun,
    policy: "admin",
    params: userParams,
    etag: "gives",
    summary: "One user",
    answer: user,
    errors: ["USER_UNKNOWN"],
  }),
  changeUser: route({
    touches: "cluster",
    method: "PATCH",
    path: "/v1/users/{user}",
    noun,
    policy: "admin",
    params: userParams,
    unseen: ["password"],
    etag: "demands",
    summary: "Change a user's role or password, lock the user out, or let the user in again",
    body: z.strictObject({
      role: maybeRole.optional(),
      grants: givenGrants.optional(),
      password: password.optional().describe("A new password; every sign-in of the user ends."),
      temporary,
      disabled: z.boolean().optional().describe("true: the user is locked out; false: the user is let in again."),
      reason,
    }),
    answer: user,
    errors: [
      "USER_UNKNOWN",
      "USER_STALE",
      "PRECONDITION_NEEDED",
      "PASSWORD_WEAK",
      "FILE_INVALID",
      "ADMIN_NEEDED",
      "OPTION_INVALID",
    ],
  }),
  listSignInsOf: route({
    touches: "cluster",
    method: "GET",
    path: "/v1/users/{user}/sign-ins",
    noun,
    policy: "admin",
    params: userParams,
    summary: "A user's sign-ins that have not ended, newest first",
    query: z.strictObject(paged),
    answer: page(signIn),
    errors: ["USER_UNKNOWN"],
  }),
  endSignInOf: route({
    touches: "cluster",
    method: "DELETE",
    path: "/v1/users/{user}/sign-ins/{signIn}",
    noun,
    policy: "admin",
    params: userParams.extend({ signIn: signInNumber }),
    summary: "End one sign-in of a user",
    query: z.strictObject({ reason }),
    answer: null,
    errors: ["USER_UNKNOWN", "SIGN_IN_UNKNOWN"],
  }),
  endSignInsOf: route({
    touches: "cluster",
    method: "DELETE",
    path: "/v1/users/{user}/sign-ins",
    noun,
    policy: "admin",
    params: userParams,
    summary: "End every sign-in of a user, who may sign in again; tokens stay",
    query: z.strictObject({ reason }),
    answer: z.strictObject({ ended: z.int().min(0) }),
    errors: ["USER_UNKNOWN"],
  }),
  removeUser: route({
    touches: "cluster",
    method: "DELETE",
    path: "/v1/users/{user}",
    noun,
    policy: "admin",
    params: userParams,
    summary: "Remove a user with every sign-in and token",
    query: z.strictObject({ reason }),
    answer: user,
    errors: ["USER_UNKNOWN", "ADMIN_NEEDED"],
  }),
  listTokens: route({
    touches: "nothing",
    method: "GET",
    path: "/v1/tokens",
    noun,
    policy: "signed-in",
    summary: "One's own tokens, newest first; an admin's list has everyone's",
    query: z.strictObject(paged),
    answer: page(token),
    errors: [],
  }),
  createToken: route({
    touches: "nothing",
    method: "POST",
    path: "/v1/tokens",
    noun,
    policy: "signed-in",
    status: 201,
    makes: { readBy: "getToken", places: { token: "name" } },
    secret: true,
    summary: "Make a token for a program, of one's own; an admin may make anyone's. It is shown once",
    body: z.strictObject({
      name: userName.describe("The token's name; no other valid token of the user has it."),
      user: tokenOwner,
      role: role.optional().describe("Not above the user's; default the user's."),
      scopes: z
        .array(scope)
        .min(1)
        .max(scopes.length)
        .optional()
        .describe("What it may do. Default: all that the role may."),
      namespaces: z.array(namespace).min(1).max(limits.grants).optional().describe("Where it is good at all."),
      expiresIn: duration.optional().describe("Default 90 days, at most 366."),
      reason,
    }),
    answer: token.extend({ secret: z.string() }),
    errors: ["TOKEN_NAME_TAKEN", "USER_UNKNOWN", "OPTION_INVALID", "DURATION_INVALID", "TASK_INVALID"],
  }),
  getToken: route({
    touches: "nothing",
    method: "GET",
    path: "/v1/tokens/{token}",
    noun,
    policy: "signed-in",
    summary: "One of one's own tokens; an admin may read anyone's. Of several with one name, the newest",
    params: tokenParams,
    query: z.strictObject({ user: tokenOwner }),
    answer: token,
    errors: ["TOKEN_UNKNOWN"],
  }),
  revokeToken: route({
    touches: "nothing",
    method: "DELETE",
    path: "/v1/tokens/{token}",
    noun,
    policy: "signed-in",
    summary: "Revoke a token of one's own; an admin may revoke anyone's",
    params: tokenParams,
    query: z.strictObject({ user: tokenOwner, reason }),
    answer: null,
    errors: ["TOKEN_UNKNOWN"],
  }),
  listWorkerKeys: route({
    touches: "listed",
    method: "GET",
    path: "/v1/worker-keys",
    noun,
    policy: "admin",
    summary: "Worker keys, newest first: whose they are, not what they are",
    query: z.strictObject(paged),
    answer: page(key),
    errors: [],
  }),
  createWorkerKey: route({
    touches: "body",
    method: "POST",
    path: "/v1/worker-keys",
    noun,
    policy: "admin",
    status: 201,
    makes: { readBy: "getWorkerKey", places: { key: "name" } },
    secret: true,
    summary: "Make a worker key. It is shown once",
    body: z.strictObject({
      name: userName.describe("The key's name; no other valid key has it."),
      groups: z
        .array(name(limits.groupNameLength))
        .min(1)
        .max(100)
        .optional()
        .describe("The groups whose tasks its workers may run. Default: the group default."),
      expiresIn: duration.optional().describe("At most ten years; default: it does not expire."),
      reason,
    }),
    answer: key.extend({ secret: z.string() }),
    errors: ["KEY_NAME_TAKEN", "TASK_INVALID", "DURATION_INVALID", "OPTION_INVALID"],
  }),
  getWorkerKey: route({
    touches: "key",
    method: "GET",
    path: "/v1/worker-keys/{key}",
    noun,
    policy: "admin",
    summary: "One worker key, without its secret. Of several with one name, the newest",
    params: keyParams,
    answer: key,
    errors: ["KEY_NAME_UNKNOWN"],
  }),
  revokeWorkerKey: route({
    touches: "key",
    method: "DELETE",
    path: "/v1/worker-keys/{key}",
    noun,
    policy: "admin",
    summary: "Lock a key's workers out; what they run is taken back",
    params: keyParams,
    query: z.strictObject({ reason }),
    answer: key,
    errors: ["KEY_NAME_UNKNOWN"],
  }),
} as const;
