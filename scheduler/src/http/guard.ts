import type { FastifyReply, FastifyRequest } from "fastify";
import { CarillonError } from "../base/errors.ts";
import { isThisMachine } from "../settings/this-machine.ts";

/** Headers for all answers of the API, which are not pages: a browser must not render, frame, sniff or cache them. */
const headers = {
  "x-content-type-options": "nosniff",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
  "cache-control": "no-store",
};

export function strictHeaders(reply: FastifyReply, place: CookiePlace): void {
  reply.headers({ ...headers, ...onlyTls(place) });
}

/**
 * Restricts browsers to TLS on this host, if a proxy serves the whole host. With a base path, other applications share the host, so its
 * owner decides.
 */
const onlyTls = ({ behindProxy, basePath }: CookiePlace): Record<string, string> =>
  behindProxy && basePath === "" ? { "strict-transport-security": "max-age=31536000; includeSubDomains" } : {};

/** The headers of an event stream, which is written without Fastify. */
export const streamHeaders = (place: CookiePlace): Record<string, string> => ({
  ...headers,
  ...onlyTls(place),
  "content-type": "text/event-stream; charset=utf-8",
  // A stopping server waits for open connections. Without this header the connection would stay open after the stream.
  connection: "close",
  // Tells nginx not to buffer the stream, which would delay its events.
  "x-accel-buffering": "no",
});

/**
 * Checks that a request that uses or sets a cookie comes from a page of this server. A browser proves that by Origin, which a page cannot
 * set, or without Origin by Sec-Fetch-Site. A client that sends neither header is not a browser, and only browsers send cookies with
 * requests from other sites.
 * @throws ORIGIN_REFUSED
 */
export function checkOrigin(request: FastifyRequest, changes: boolean): void {
  const { origin, "sec-fetch-site": site } = request.headers;
  if (site === "cross-site" || site === "same-site") throw refused(`a page that is ${site}`);
  if (origin === undefined || (!changes && site === "same-origin")) return;
  // Behind a proxy, `request.host` is the public host, from the proxy's headers; see `trustProxy`.
  const own = request.host.toLowerCase();
  if (!URL.canParse(origin) || new URL(origin).host !== own) throw refused(origin);
}

/**
 * Checks the `Host` header of a server without a proxy, which is meant for this machine only. If another site's name resolves to this
 * machine (DNS rebinding), a browser treats that site's page and this server as one origin; only the `Host` header reveals that.
 * @throws HOST_REFUSED
 */
export function checkHost(host: string): void {
  const url = `http://${host}`;
  if (URL.canParse(url) && isThisMachine(new URL(url).hostname)) return;
  throw new CarillonError("HOST_REFUSED", `no server is called ${JSON.stringify(host.slice(0, 200))} here`, {
    hint: "Use localhost or 127.0.0.1. Behind a proxy that hands on its own name, start the server with --behind-proxy.",
  });
}

const refused = (from: string) =>
  new CarillonError("ORIGIN_REFUSED", `the request comes from ${from}`, {
    hint: "Use the console at this server's own address. A program sends a token instead of a cookie.",
  });

/** How browsers reach the server, which decides how its cookies are named, to which paths they are sent, and whether it demands TLS. */
export interface CookiePlace {
  behindProxy: boolean;
  basePath: string;
}

/**
 * The name of the sign-in cookie. With TLS, browsers accept a cookie with the prefix `__Host-` only from this very host and for all its
 * paths. With a base path, the cookie has that path instead, so that it is not sent to the other applications of the host.
 */
export const cookieName = ({ behindProxy, basePath }: CookiePlace): string =>
  `${behindProxy ? (basePath === "" ? "__Host-" : "__Secure-") : ""}carillon`;

const agentLength = 300;
export const agentOf = ({ headers }: FastifyRequest): string => (headers["user-agent"] ?? "").slice(0, agentLength);

export const readCookie = (request: Pick<FastifyRequest, "headers">, name: string): string | null =>
  readCookieOf(request, name, /^[A-Za-z0-9_-]{43}$/);

/**
 * Returns a cookie's value; null if it is absent, or if several cookies have the name. In that case another host of the site has set one of
 * them, and the browser does not say which.
 * @param shape the expected form; a value of another form is ignored
 */
export function readCookieOf({ headers }: Pick<FastifyRequest, "headers">, name: string, shape: RegExp): string | null {
  const found = (headers.cookie ?? "").split(";").flatMap((part) => {
    const [key = "", value = ""] = part.split("=", 2).map((text) => text.trim());
    return key === name ? [value] : [];
  });
  const [value = ""] = found;
  return found.length === 1 && shape.test(value) ? value : null;
}

export function cookieText(
  name: string,
  value: string | null,
  maxAgeMs: number,
  { behindProxy, basePath }: CookiePlace,
  sameSite: "Strict" | "Lax" = "Strict",
): string {
  const parts = [`${name}=${value ?? ""}`, `Path=${basePath || "/"}`, "HttpOnly", `SameSite=${sameSite}`];
  parts.push(`Max-Age=${value === null ? 0 : Math.floor(maxAgeMs / 1_000)}`);
  if (behindProxy) parts.push("Secure");
  return parts.join("; ");
}
