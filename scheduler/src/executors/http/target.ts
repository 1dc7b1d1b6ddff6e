import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { CarillonError, messageOf } from "../../base/errors.ts";
import type { AllowList } from "./allow-list.ts";

/** Resolves a host name to all its addresses, in the order of preference. */
export type Resolve = (host: string) => Promise<string[]>;

export const systemResolve: Resolve = async (host) => (await lookup(host, { all: true })).map(({ address }) => address);

/** A URL with its checked addresses; connections are made only to these addresses. */
export interface Target {
  url: URL;
  /** The URL in a form that may be shown to people. */
  shown: string;
  addresses: { address: string; family: 4 | 6 }[];
}

/**
 * Resolves the URL's host once and returns the permitted addresses. The connection uses these addresses, so later changes of the
 * DNS records have no effect.
 * @param told `shown`: the part of the URL that errors may contain; `hint`: the hint for a destination that is not allowed
 * @throws HTTP_NOT_ALLOWED; HTTP_FAILED if the name cannot be resolved
 */
export async function targetOf(
  url: URL,
  allow: AllowList,
  resolve: Resolve,
  { shown = shownUrl(url), hint = allowHint } = {},
): Promise<Target> {
  const host = url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw notAllowed(shown, `${url.protocol} is neither http: nor https:`, hint);
  if (url.username !== "" || url.password !== "") throw notAllowed(shown, "it holds a user or password", hint);
  const found = isIP(host) > 0 ? [host] : allow.mayResolve(host, port) ? await resolved(host, resolve) : [];
  const addresses = found.filter((address) => allow.permits(host, port, address));
  if (addresses.length === 0) {
    const hidden = found.length > 0 && isIP(host) === 0 && allow.mayResolve(host, port);
    throw notAllowed(
      shown,
      `${host}:${port} is not among what this worker may call${hidden ? `, or leads to an address that is not listed: ${found.join(", ")}` : ""}`,
      hint,
    );
  }
  return { url, shown, addresses: addresses.map((address) => ({ address, family: isIP(address) === 6 ? 6 : 4 })) };
}

async function resolved(host: string, resolve: Resolve): Promise<string[]> {
  try {
    return await resolve(host);
  } catch (cause) {
    throw new CarillonError("HTTP_FAILED", `${host} has no address: ${messageOf(cause)}`, {
      hint: "Check the name, and the worker's name servers.",
      cause,
    });
  }
}

const allowHint =
  "Add the host, or for a private address the address, to `httpTasks.allow` of the worker (--allow-http).";

const notAllowed = (shown: string, why: string, hint: string): CarillonError =>
  new CarillonError("HTTP_NOT_ALLOWED", `${shown} may not be called: ${why}`, { hint });

/** The URL in a form that may be shown to people: without the query, which often contains keys. */
export function shownUrl({ protocol, host, pathname, search }: URL): string {
  return `${protocol}//${host}${pathname}${search === "" ? "" : "?…"}`;
}
