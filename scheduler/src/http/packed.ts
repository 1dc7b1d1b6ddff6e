import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { FastifyRequest } from "fastify";

/** Answers shorter than this many characters are not compressed, because that would cost more than the rest of the request. */
export const packFromLength = 16 * 1024;

const pack = promisify(gzip);

/** Compresses text with gzip, on another thread, so that other requests are not delayed. */
export const packed = (text: string): Promise<Buffer> => pack(text, { level: 1 });

/** True if Accept-Encoding allows gzip: "gzip", "*" and "gzip;q=0.5" do, "gzip;q=0" does not. */
export function takesPacked({ headers }: Pick<FastifyRequest, "headers">): boolean {
  for (const part of String(headers["accept-encoding"] ?? "").split(",")) {
    const [coding = "", weight = ""] = part.split(";").map((text) => text.trim().toLowerCase());
    if ((coding === "gzip" || coding === "*") && !/^q=0(?:\.0*)?$/.test(weight)) return true;
  }
  return false;
}
