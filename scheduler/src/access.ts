/** Who may do what. Pure: the store keeps users, tokens and sign-ins, the server asks here. See docs/access.md. */
import { CarillonError } from "./errors.ts";

/** Each may do what the ones before it may. */
export const roles = ["viewer", "operator", "editor", "admin"] as const;
export type Role = (typeof roles)[number];

/**
 * What a route asks of whoever calls it. `anyone`: nothing. `signed-in`: to be someone, whatever the role. `worker`: a worker
 * key, which is good for nothing else. A role: at least that one.
 */
export type Policy = "anyone" | "signed-in" | "worker" | Role;

export const nouns = [
  "tasks",
  "runs",
  "operations",
  "calendars",
  "cluster",
  "access",
  "audit",
  "secrets",
  "alarms",
] as const;
export type Noun = (typeof nouns)[number];

/** What a token may be narrowed to, beside its role. */
export const scopes = nouns.flatMap((noun) => [`${noun}:read`, `${noun}:write`] as const);
export type Scope = `${Noun}:${"read" | "write"}`;

/** Someone who has shown who they are. */
export interface Principal {
  kind: "user" | "token";
  userId: number;
  /** Of the user; a token's are its user's doings. */
  user: string;
  /** Of a token: its own name. */
  token: string | null;
  /** What the user and the token both have: the lesser of the two. */
  role: Role;
  /** null: everything that the role may. */
  scopes: readonly Scope[] | null;
}

export const hasRole = (role: Role, least: Role): boolean => roles.indexOf(role) >= roles.indexOf(least);

export const lesserRole = (a: Role, b: Role): Role => (hasRole(a, b) ? b : a);

/** Whom a change is put down to: "ann", "ann by token ci". */
export const principalText = ({ user, token }: Principal): string =>
  token === null ? user : `${user} by token ${token}`;

/** @throws ACCESS_DENIED */
export function checkPolicy(
  who: Principal,
  { policy, noun, writes }: { policy: Exclude<Policy, "anyone" | "worker">; noun: Noun; writes: boolean },
): void {
  if (policy !== "signed-in" && !hasRole(who.role, policy)) {
    throw new CarillonError("ACCESS_DENIED", `this needs the role ${policy}; ${principalText(who)} has ${who.role}`, {
      hint: "Ask an admin for the role, or use a token that has it.",
    });
  }
  const scope: Scope = `${noun}:${writes ? "write" : "read"}`;
  if (who.scopes !== null && !who.scopes.includes(scope)) {
    throw new CarillonError("ACCESS_DENIED", `the token ${who.token} is not for ${scope}`, {
      hint: "Make one that has this scope.",
    });
  }
}
