import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { FastifyRequest } from "fastify";

/** Compression of an answer shorter than this costs the server more than the rest of the request. */
export const packFromLength = 16 * 1024;

const pack = promisify(gzip);

/** Runs on another thread, so that other requests are not blocked. */
export const packed = (text: string): Promise<Buffer> => pack(text, { level: 1 });

/** True for "gzip", "*" and "gzip;q=0.5", but not for "gzip;q=0". */
export function takesPacked({ headers }: Pick<FastifyRequest, "headers">): boolean {
  for (const part of String(headers["accept-encoding"] ?? "").split(",")) {
    const [coding = "", weight = ""] = part.split(";").map((text) => text.trim().toLowerCase());
    if ((coding === "gzip" || coding === "*") && !/^q=0(?:\.0*)?$/.test(weight)) return true;
  }
  return false;
}
