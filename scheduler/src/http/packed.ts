import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { FastifyRequest } from "fastify";

/** A packed answer of a few kilobytes costs the server more than all the rest of it. */
export const packFromLength = 16 * 1024;

const pack = promisify(gzip);

/** On another thread: other requests go on meanwhile. */
export const packed = (text: string): Promise<Buffer> => pack(text, { level: 1 });

/** "gzip", "*" or "gzip;q=0.5", but not "gzip;q=0". */
export function takesPacked({ headers }: Pick<FastifyRequest, "headers">): boolean {
  for (const part of String(headers["accept-encoding"] ?? "").split(",")) {
    const [coding = "", weight = ""] = part.split(";").map((text) => text.trim().toLowerCase());
    if ((coding === "gzip" || coding === "*") && !/^q=0(?:\.0*)?$/.test(weight)) return true;
  }
  return false;
}
