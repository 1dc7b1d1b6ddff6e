/** Single sign-on with an OpenID Connect provider: a node's settings for the provider, and the roles that the provider's claims grant. */
import { type Grant, hasRole, type Role, roles } from "../access/access.ts";
import { CarillonError } from "../base/errors.ts";
import type { Json } from "../base/json.ts";
import { limits } from "../base/limits.ts";
import { checkNamespace } from "../base/namespace.ts";
import { meant } from "../base/nearest.ts";

export interface ProviderRule {
  /** The claim's name, such as "groups". */
  claim: string;
  /**
   * The value that the claim must equal, or contain if it is a list. If absent, the claim must be true, a non-empty text, or a
   * list with such a value.
   */
  has?: string;
  role: Role;
  /** The namespaces in which the role is granted; default: all. */
  in?: string | string[];
}

export interface ProviderOptions {
  /** The provider's URL, such as https://login.example.com. */
  issuer: string;
  clientId: string;
  clientSecret: string;
  /**
   * This server's URL in browsers, such as https://carillon.example.com, without the option `basePath`. The provider redirects browsers to
   * the path /v1/sign-in/provided below this URL and the base path.
   */
  url: string;
  /** The provider's name on the sign-in page; default: the host of its URL. */
  label?: string;
  /** The claim that contains the user's name; default "preferred_username". */
  name?: string;
  /** The scopes requested in addition to openid; default "profile" and "email". */
  scopes?: string[];
  /** Rules that grant roles. All matching rules apply; a user without a matching rule cannot sign in. */
  rules: ProviderRule[];
}

export type ProviderSettings = Required<Omit<ProviderOptions, "rules">> & {
  rules: { claim: string; has: string | null; role: Role; in: string[] | null }[];
};

const names = ["issuer", "clientId", "clientSecret", "url", "label", "name", "scopes", "rules"];
const ruleNames = ["claim", "has", "role", "in"];
const rulesMost = 1_000;

/** Validates the option `provider`. @throws OPTION_INVALID */
export function providerSettings(options: ProviderOptions): ProviderSettings {
  checkNames("provider", options, names);
  const { issuer, clientId, clientSecret, url, name = "preferred_username", scopes = ["profile", "email"] } = options;
  for (const [what, one] of Object.entries({ issuer, clientId, clientSecret, url, name }))
    if (typeof one !== "string" || one === "" || one.length > 2_000) throw wrong(`provider.${what} is no text`);
  const [at, own] = [addressOf("issuer", issuer), addressOf("url", url)];
  if (own.pathname !== "/" || own.search !== "" || own.hash !== "")
    throw wrong(
      "provider.url has a path",
      "Give scheme, host and port alone. The path at which a proxy serves this server is the option basePath.",
    );
  if (
    !Array.isArray(scopes) ||
    !scopes.every((scope) => typeof scope === "string" && /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope))
  )
    throw wrong("provider.scopes are no list of scopes");
  if (!Array.isArray(options.rules) || options.rules.length === 0 || options.rules.length > rulesMost)
    throw wrong("provider.rules has none", "Such as rules: [{ claim: groups, has: ops, role: operator }].");
  const label = options.label ?? at.host;
  if (typeof label !== "string" || label.length > 100) throw wrong("provider.label is no short text");
  return {
    issuer,
    clientId,
    clientSecret,
    url: own.origin,
    label,
    name,
    scopes: ["openid", ...scopes],
    rules: Array.from(options.rules, checkedRule),
  };
}

function checkedRule(rule: ProviderRule): ProviderSettings["rules"][number] {
  checkNames("a rule of provider.rules", rule, ruleNames);
  const { claim, has = null, role, in: where } = rule;
  if (typeof claim !== "string" || claim === "") throw wrong("a rule of provider.rules names no claim");
  if (has !== null && typeof has !== "string") throw wrong(`the rule for ${claim} has no text to compare with`);
  if (!roles.includes(role)) throw wrong(`the rule for ${claim} has no role`, `Give one of ${roles.join(", ")}.`);
  if (where === undefined) return { claim, has, role, in: null };
  // A sparse list becomes a list with undefined values, which are refused below.
  const namespaces = Array.isArray(where) ? Array.from(where) : [where];
  if (namespaces.some((one) => typeof one !== "string")) throw wrong(`the rule for ${claim} is in no namespaces`);
  return { claim, has, role, in: namespaces.map(checkNamespace) };
}

/** Validates a URL. Plain http is accepted only for this machine. */
function addressOf(what: string, text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username !== "") throw wrong(`provider.${what} is no address`);
  if (url.protocol === "http:" && !isThisMachine(url))
    throw wrong(`provider.${what} is not https`, "Tokens and cookies would travel in the open.");
  return url;
}

export const isThisMachine = ({ hostname }: URL): boolean => /^(?:127(?:\.\d+){3}|\[::1\]|localhost)$/.test(hostname);

/**
 * Returns the claims without an e-mail address that the provider has not verified. A provider may let users enter any address, so
 * no rule and no user name may depend on an unverified address.
 */
export function verifiedOnly(claims: Record<string, Json | undefined>): Record<string, Json | undefined> {
  if (claims.email_verified === true) return claims;
  const { email: _, ...others } = claims;
  return others;
}

/** Returns the roles that a provider's claims grant; null if they grant no role, so that the user cannot sign in. */
export function rightsOf(
  { rules }: Pick<ProviderSettings, "rules">,
  claims: Record<string, Json | undefined>,
): { role: Role | null; grants: Grant[] } | null {
  const held = new Map<string | null, Role>();
  for (const { claim, has, role, in: where } of rules) {
    if (!matches(Object.hasOwn(claims, claim) ? claims[claim] : undefined, has)) continue;
    for (const place of where ?? [null]) if (!hasRole(held.get(place) ?? null, role)) held.set(place, role);
  }
  if (held.size === 0) return null;
  const grants = [...held].flatMap(([namespace, role]) => (namespace === null ? [] : [{ namespace, role }]));
  return { role: held.get(null) ?? null, grants: grants.slice(0, limits.grants) };
}

function matches(value: Json | undefined, has: string | null): boolean {
  const values = Array.isArray(value) ? value : [value];
  if (has !== null) return values.includes(has);
  return values.some((one) => one === true || (typeof one === "string" && one !== ""));
}

function checkNames(what: string, given: object, known: string[]): void {
  if (typeof given !== "object" || given === null || Array.isArray(given)) throw wrong(`${what} is no object`);
  const stranger = Object.keys(given).find((name) => !known.includes(name));
  if (stranger !== undefined)
    throw wrong(`${what} has no ${JSON.stringify(stranger)}${meant(stranger, known)}`, `It has ${known.join(", ")}.`);
}

const wrong = (what: string, hint = "See docs/access/sign-in.md."): CarillonError =>
  new CarillonError("OPTION_INVALID", what, { hint });
