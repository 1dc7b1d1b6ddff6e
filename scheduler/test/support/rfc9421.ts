import { createHash, createHmac } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

/** A request that a receiver got. */
interface Came {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  raw: string;
}

/**
 * Returns the headers that sign this request by RFC 9421. They are computed from the received request, without code of the
 * implementation.
 * @param told names of the further headers that are signed
 */
export function signedAs({ method, url, headers, raw }: Came, told: string[], keyId: string, secret: string) {
  const digest = `sha-256=:${createHash("sha256").update(raw).digest("base64")}:`;
  const [path, query = ""] = url.split("?");
  const parts = [
    ["@method", method],
    ["@authority", headers.host],
    ["@path", path],
    ["@query", `?${query}`],
    ["content-digest", digest],
    ...told.map((name) => [name, headers[name]]),
  ];
  const input = `(${parts.map(([name]) => `"${name}"`).join(" ")});created=${headers["carillon-timestamp"]};keyid="${keyId}"`;
  const lines = [...parts, ["@signature-params", input]].map(([name, value]) => `"${name}": ${value}`);
  return {
    "content-digest": digest,
    "signature-input": `carillon=${input}`,
    signature: `carillon=:${createHmac("sha256", secret).update(lines.join("\n")).digest("base64")}:`,
  };
}
