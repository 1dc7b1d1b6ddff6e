/**
 * Signing in by a provider leads away from the page and back to its root. The tab remembers the former address meanwhile. The
 * reason for a refusal comes back in the address, as words of this list and never as free text, which anyone could have written
 * there.
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

export function keepPlace(): void {
  sessionStorage.setItem(key, location.pathname + location.search);
}

/** Returns only to an address of this page, and only from its root, where the provider's way ends. */
export function takePlace(): string | undefined {
  const place = sessionStorage.getItem(key);
  sessionStorage.removeItem(key);
  const isWanted = place !== null && place !== "/" && /^\/(?![/\\])/.test(place) && location.pathname === "/";
  return isWanted ? place : undefined;
}
