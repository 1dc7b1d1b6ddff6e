/**
 * Access rules: which user, token or worker key may do what. Without side effects: the store holds users, tokens and sign-ins, and the
 * server applies these rules to each request. See docs/access/access.md.
 */
import { CarillonError } from "../base/errors.ts";
import { checkNamespace, namespaceOf } from "../base/namespace.ts";

/** The roles in ascending order: each role includes the rights of the roles before it. */
export const roles = ["viewer", "operator", "editor", "admin"] as const;
export type Role = (typeof roles)[number];

/**
 * The right that a route requires of its caller. `anyone`: no right. `signed-in`: any user or token. `worker`: a worker key,
 * which no other route accepts. A role: at least that role, in the namespaces that the route concerns (see `touches`).
 */
export type Policy = "anyone" | "signed-in" | "worker" | Role;

/**
 * The namespaces that a route concerns. `nothing`: none; the route returns or changes only data of the caller, or data without a namespace.
 * `cluster`: all namespaces, so the role is required in every namespace. `listed`: the answer omits items that the caller may not see.
 * `task`, `calendar`, `group`, `key`, `alarmRule`, `hook`: the namespace of the name in the path. `run`, `operation`, `silence`: the
 * namespace of the object whose number is in the path; a caller who may not see the object gets "not found". `body`: the namespaces of the
 * names in the body.
 */
export const touches = [
  ...([
    "nothing",
    "cluster",
    "listed",
    "task",
    "calendar",
    "group",
    "key",
    "run",
    "operation",
    "silence",
    "alarmRule",
    "hook",
    "body",
  ] as const),
];
export type Touches = (typeof touches)[number];

const nouns = [
  "tasks",
  "runs",
  "operations",
  "calendars",
  "cluster",
  "access",
  "audit",
  "secrets",
  "alarms",
  "feed",
  "hooks",
] as const;
export type Noun = (typeof nouns)[number];

/** The scopes that can limit a token in addition to its role. */
export const scopes = nouns.flatMap((noun) => [`${noun}:read`, `${noun}:write`] as const);
export type Scope = `${Noun}:${"read" | "write"}`;

/** A role in one namespace. */
export interface Grant {
  namespace: string;
  role: Role;
}

/** Checks a user's grants and returns them. @throws OPTION_INVALID for an invalid namespace, or two grants of one namespace */
export function checkGrants(grants: Grant[]): Grant[] {
  for (const { namespace } of grants) checkNamespace(namespace);
  if (new Set(grants.map(({ namespace }) => namespace)).size < grants.length)
    throw new CarillonError("OPTION_INVALID", "two grants are of one namespace", { hint: "Give the higher one." });
  return grants;
}

/** The authenticated caller: a user, or a token of a user. */
export interface Principal {
  kind: "user" | "token";
  userId: number;
  /** The user's name; for a token the name of its user. */
  user: string;
  /** The token's name; null: the caller is a user without a token. */
  token: string | null;
  /**
   * The role in every namespace; null: the caller has roles only through `grants`. A token's role is the lower of its own and its user's.
   */
  role: Role | null;
  grants: readonly Grant[];
  /** For a token: the namespaces in which it is valid; null: every namespace in which its user has a role. */
  namespaces: readonly string[] | null;
  /** The scopes that narrow the role; null: everything that the role allows. */
  scopes: readonly Scope[] | null;
  /**
   * True if an admin or the first start set the user's password: until the user replaces it, the caller may use only routes with
   * `byTemporary`.
   */
  temporary: boolean;
  /** True if an identity provider signs the user in, so that the user has no password here. */
  provided: boolean;
}

export const hasRole = (role: Role | null, least: Role): boolean =>
  role !== null && roles.indexOf(role) >= roles.indexOf(least);

const lesserRole = (a: Role, b: Role): Role => (hasRole(a, b) ? b : a);

/** Returns a token's effective role and grants: those of its user, limited to the token's role and namespaces. */
export function narrowed(
  { role, grants }: Pick<Principal, "role" | "grants">,
  token: { role: Role; namespaces: readonly string[] | null },
): Pick<Principal, "role" | "grants"> {
  const least = (one: Role) => lesserRole(one, token.role);
  const { namespaces } = token;
  if (namespaces === null)
    return {
      role: role && least(role),
      grants: grants.map((grant) => ({ ...grant, role: least(grant.role) })),
    };
  const there = namespaces.flatMap((namespace) => {
    const found = highestOf([role, ...grants.filter((grant) => grant.namespace === namespace).map((one) => one.role)]);
    return found === null ? [] : [{ namespace, role: least(found) }];
  });
  return { role: null, grants: there };
}

const highestOf = (some: readonly (Role | null)[]): Role | null =>
  some.reduce((a, b) => (b !== null && !hasRole(a, b) ? b : a), null);

/** Returns the caller's highest role in any namespace; null: the caller has none. */
export const highestRole = ({ role, grants }: Pick<Principal, "role" | "grants">): Role | null =>
  highestOf([role, ...grants.map((grant) => grant.role)]);

/** Returns the author of a change as it is recorded: "ann", or "ann by token ci". */
export const principalText = ({ user, token }: Pick<Principal, "user" | "token">): string =>
  token === null ? user : `${user} by token ${token}`;

/** The namespaces in which the caller has at least a given role. */
export class Reach {
  /** The names of the namespaces; null: all namespaces. */
  readonly namespaces: readonly string[] | null;
  readonly #who: string;
  readonly #least: Role;

  constructor(who: Pick<Principal, "role" | "grants" | "user" | "token">, least: Role) {
    const { role, grants } = who;
    const some = () => grants.filter((grant) => hasRole(grant.role, least)).map(({ namespace }) => namespace);
    this.namespaces = hasRole(role, least) ? null : some();
    this.#who = principalText(who);
    this.#least = least;
  }

  /** True if the namespace of the object is included. @param name the name of a task, a group, a calendar or a key */
  has(name: string): boolean {
    return this.namespaces === null || this.namespaces.includes(namespaceOf(name));
  }

  /** Checks only the name's namespace, so the error does not reveal whether the object exists. @throws ACCESS_DENIED */
  check(name: string): void {
    if (!this.has(name)) throw this.refusal(`in the namespace ${JSON.stringify(namespaceOf(name))}`);
  }

  refusal(where: string): CarillonError {
    return new CarillonError("ACCESS_DENIED", `this needs the role ${this.#least} ${where}; ${this.#who} has it not`, {
      hint: "Ask an admin for the role, or use a token that has it.",
    });
  }
}

/**
 * Checks a request by its caller and route alone, before the object of the request is read.
 * @returns the namespaces in which the caller has the role that the route requires
 * @throws PASSWORD_TEMPORARY, ACCESS_DENIED
 */
export function checkPolicy(
  who: Principal,
  asked: {
    policy: Exclude<Policy, "anyone" | "worker">;
    touches: Touches;
    noun: Noun;
    writes: boolean;
    byTemporary?: true | undefined;
  },
): Reach {
  const { policy, noun, writes } = asked;
  if (who.temporary && !asked.byTemporary)
    throw new CarillonError("PASSWORD_TEMPORARY", `${who.user} signed in with a password that was handed over`, {
      hint: "Choose your own first: in the console, or by POST /v1/me/password.",
    });
  const reach = new Reach(who, policy === "signed-in" ? "viewer" : policy);
  if (policy !== "signed-in") {
    const everywhere = asked.touches === "cluster";
    if (everywhere ? reach.namespaces !== null : reach.namespaces?.length === 0)
      throw reach.refusal(everywhere ? "everywhere" : "somewhere");
  }
  const scope: Scope = `${noun}:${writes ? "write" : "read"}`;
  if (who.scopes !== null && !who.scopes.includes(scope)) {
    throw new CarillonError("ACCESS_DENIED", `the token ${who.token} is not for ${scope}`, {
      hint: "Make one that has this scope.",
    });
  }
  return reach;
}

export const userUnknown = (name: string): CarillonError =>
  new CarillonError("USER_UNKNOWN", `there is no user ${name}`, { hint: "See the list of users." });

/** Creates the error for an unknown sign-in. @param whose the beginning of the message: "you have", "ann has" */
export const signInUnknown = (whose: string, signIn: number): CarillonError =>
  new CarillonError("SIGN_IN_UNKNOWN", `${whose} no sign-in ${signIn}`, {
    hint: "It may have ended already. The list of sign-ins has their numbers.",
  });
