import { basePath } from "../api/base.ts";

/**
 * A sign-in with an identity provider leaves the page and returns to its root; `sessionStorage` keeps the former address. If the
 * sign-in is refused, the address contains a code and a reason from these lists. Other text from the address is not shown,
 * because any link could contain it.
 */
const codes = ["SIGN_IN_REFUSED", "PROVIDER_UNREACHABLE", "TOO_MANY_ATTEMPTS", "USER_NAME_TAKEN", "other"] as const;
const whys = ["attempt", "answer", "nobody", "invalid", "rule", "name", "locked"] as const;

export interface ProviderRefusal {
  code: (typeof codes)[number];
  why: (typeof whys)[number] | undefined;
}

export function readRefusal(): ProviderRefusal | undefined {
  const given = new URLSearchParams(location.search);
  const [code, why] = [given.get("refused"), given.get("why")];
  if (code === null) return undefined;
  return { code: codes.find((one) => one === code) ?? "other", why: whys.find((one) => one === why) };
}

/** Removes the refusal from the address, so that a reload does not show it again. */
export function forgetRefusal(): void {
  const url = new URL(location.href);
  if (!url.searchParams.has("refused")) return;
  for (const name of ["refused", "why"]) url.searchParams.delete(name);
  history.replaceState(history.state, "", url);
}

const key = "carillon.place";
const root = `${basePath}/`;

export function keepPlace(): void {
  sessionStorage.setItem(key, location.pathname + location.search);
}

/** Returns the stored address once, if it is a path of this site and the browser is at the root, where a sign-in returns to. */
export function takePlace(): string | undefined {
  const place = sessionStorage.getItem(key);
  sessionStorage.removeItem(key);
  const isWanted = place !== null && place !== root && /^\/(?![/\\])/.test(place) && location.pathname === root;
  return isWanted ? place : undefined;
}
