import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { createGunzip } from "node:zlib";

/** Returns the decompressed body as text. @throws Error if the body is incomplete or larger than `most` bytes */
export async function textOf(response: IncomingMessage, most: number): Promise<string> {
  let stream: Readable = response;
  if (response.headers["content-encoding"] === "gzip") {
    const unpacked = createGunzip();
    response.on("error", (error) => unpacked.destroy(error));
    stream = response.pipe(unpacked);
  }
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of stream) {
    bytes += (part as Buffer).length;
    if (bytes > most) throw new Error(`the answer is larger than ${most} bytes`);
    parts.push(part as Buffer);
  }
  return Buffer.concat(parts).toString();
}
