import { withoutCredentials } from "../base/credentials.ts";
import { CarillonError } from "../base/errors.ts";
import { shownValue } from "../base/json.ts";
import type { OptionKind } from "./option-kinds.ts";

/** Options about the way from a browser to the console. */
export interface ServedOptions {
  /**
   * The path at which a proxy serves this process, such as "/carillon" for https://tools.example/carillon/. The console's addresses,
   * cookies and redirects begin with this path. The proxy may keep this path in a request or remove it. Default: none. Must be the same on
   * every node with `listen`.
   */
  basePath?: string;
  /**
   * The origins of the pages that may show the console in a frame, such as "https://portal.example.com"; no IPv6 addresses. Default: none.
   * Must be the same on every node with `listen`.
   */
  frameAncestors?: string[];
}

export interface ServedSettings {
  /** Begins with a slash and does not end with one; "" if there is none. */
  basePath: string;
  frameAncestors: readonly string[];
}

export const servedKinds: Record<keyof ServedOptions, OptionKind> = { basePath: "text", frameAncestors: "texts" };

/** Segments of letters, digits and signs that are the same in a URL, in HTML and in a cookie. */
const pathShape = /^(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._~-]+)+$/;
/** The first segments of the server's own paths. A base path must not begin with one of them, because its requests would be ambiguous. */
const own = ["v1", "assets", "metrics", "livez", "readyz", "healthz"];
const longest = 200;

/** Validates the options and adds defaults. @throws OPTION_INVALID */
export function servedSettings({ basePath = "", frameAncestors = [] }: ServedOptions): ServedSettings {
  const path = basePath.replace(/\/$/, "");
  const [, first = ""] = path.split("/");
  if (path !== "" && (!pathShape.test(path) || path.length > longest || own.includes(first)))
    throw new CarillonError("OPTION_INVALID", `basePath cannot be ${shownValue(basePath)}`, {
      hint: `Give a path such as "/carillon", of letters, digits, ".", "_", "~" and "-", that does not begin with ${own.map((one) => `/${one}`).join(", ")}.`,
      path: "basePath",
    });
  return { basePath: path, frameAncestors: frameAncestors.map(checkedOrigin) };
}

/** Returns an origin as browsers write it. @throws OPTION_INVALID if the text is a URL with more than an origin, or none */
function checkedOrigin(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isOrigin = url && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/` && !text.includes("*");
  if (isOrigin && url.hostname.startsWith("["))
    throw new CarillonError("OPTION_INVALID", `frameAncestors cannot have the IPv6 address ${shownValue(text)}`, {
      hint: "The header that browsers obey (Content-Security-Policy) has no form for it. Give the page's host a name.",
      path: "frameAncestors",
    });
  if (isOrigin) return url.origin;
  throw new CarillonError("OPTION_INVALID", `frameAncestors cannot have ${shownValue(withoutCredentials(text))}`, {
    hint: 'Give scheme, host and port of a page, such as "https://portal.example.com".',
    path: "frameAncestors",
  });
}
